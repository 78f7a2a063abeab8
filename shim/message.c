/* SPDX-License-Identifier: Apache-2.0 */
#include "message.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "config.h"
#include "old_glibc.h"
#include "own_file.h"
#include "quiet_write.h"

enum {
	LINE_SIZE = 1024,
	LOG_LINE_MAX = 4096,
	REPEATS_SHOWN = 16,
};

/* Where the log is, and where it is not stderr. */
static struct own_file log_file = { .fd = -1 };
static char log_path[PATH_MAX];

struct text {
	char *buffer;
	size_t size;
	size_t length;
};

static void put(struct text *text, char c)
{
	if (text->length + 1 < text->size) {
		text->buffer[text->length++] = c;
	}
}

static void put_string(struct text *text, const char *string)
{
	if (string == NULL) {
		string = "(null)";
	}
	while (*string != '\0') {
		put(text, *string++);
	}
}

static void put_number(struct text *text, unsigned long long value, unsigned int base)
{
	char digits[24];
	size_t count = 0;

	do {
		digits[count++] = "0123456789abcdef"[value % base];
		value /= base;
	} while (value != 0);
	while (count > 0) {
		put(text, digits[--count]);
	}
}

static void put_signed(struct text *text, long long value)
{
	if (value < 0) {
		put(text, '-');
		put_number(text, 0ull - (unsigned long long)value, 10);
	} else {
		put_number(text, (unsigned long long)value, 10);
	}
}

static unsigned long long next_unsigned(va_list *arguments, int longs, bool is_size)
{
	if (is_size) {
		return va_arg(*arguments, size_t);
	}
	switch (longs) {
	case 0:
		return va_arg(*arguments, unsigned int);
	case 1:
		return va_arg(*arguments, unsigned long);
	default:
		return va_arg(*arguments, unsigned long long);
	}
}

static long long next_signed(va_list *arguments, int longs)
{
	switch (longs) {
	case 0:
		return va_arg(*arguments, int);
	case 1:
		return va_arg(*arguments, long);
	default:
		return va_arg(*arguments, long long);
	}
}

static void put_conversion(struct text *text, char conversion, va_list *arguments, int longs,
			   bool is_size)
{
	switch (conversion) {
	case 's':
		put_string(text, va_arg(*arguments, const char *));
		break;
	case 'c':
		put(text, (char)va_arg(*arguments, int));
		break;
	case 'd':
		put_signed(text, next_signed(arguments, longs));
		break;
	case 'u':
		put_number(text, next_unsigned(arguments, longs, is_size), 10);
		break;
	case 'x':
		put_number(text, next_unsigned(arguments, longs, is_size), 16);
		break;
	case 'p':
		put_string(text, "0x");
		put_number(text, (uintptr_t)va_arg(*arguments, void *), 16);
		break;
	default:
		put(text, conversion);
		break;
	}
}

size_t cw_vformat(char *buffer, size_t size, const char *format, va_list arguments)
{
	struct text text = { .buffer = buffer, .size = size };
	va_list rest;

	va_copy(rest, arguments);
	while (*format != '\0') {
		int longs = 0;
		bool is_size = false;

		if (*format != '%') {
			put(&text, *format++);
			continue;
		}
		format++;
		for (; *format == 'l' || *format == 'z'; format++) {
			longs += *format == 'l';
			is_size |= *format == 'z';
		}
		put_conversion(&text, *format++, &rest, longs, is_size);
	}
	va_end(rest);
	buffer[text.length] = '\0';
	return text.length;
}

size_t cw_format(char *buffer, size_t size, const char *format, ...)
{
	va_list arguments;
	size_t length;

	va_start(arguments, format);
	length = cw_vformat(buffer, size, format, arguments);
	va_end(arguments);
	return length;
}

const char *cw_human_size(char buffer[16], unsigned long long bytes)
{
	static const char units[][4] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	size_t unit = 0;
	unsigned long long tenths = 0;

	while (bytes >= 1024 && unit + 1 < sizeof(units) / sizeof(units[0])) {
		tenths = bytes % 1024 * 10 / 1024;
		bytes /= 1024;
		unit++;
	}
	if (unit == 0) {
		cw_format(buffer, 16, "%llu B", bytes);
	} else {
		cw_format(buffer, 16, "%llu.%llu %s", bytes, tenths, units[unit]);
	}
	return buffer;
}

/* 0, or the error that kept some of it from being written. errno is kept. */
static int write_all(int fd, const char *text, size_t length)
{
	int saved_errno = errno;
	int error = 0;

	while (length > 0 && error == 0) {
		ssize_t written = quiet_write(fd, text, length);

		if (written > 0) {
			text += written;
			length -= (size_t)written;
		} else if (written == 0 || errno != EINTR) {
			error = written == 0 ? EIO : errno;
		}
	}
	errno = saved_errno;
	return error;
}

/* What standard error was when we were loaded. */
static struct stat first_stderr;
static bool has_stderr;

void cw_message_note_stderr(void)
{
	has_stderr = own_file_facts(STDERR_FILENO, &first_stderr);
}

/* Whether what has the number is such as freopen, a shell or a terminal make of it. */
static bool is_stderr(const struct stat *status)
{
	long flags = syscall(SYS_fcntl, STDERR_FILENO, F_GETFL);
	bool only_written = (flags & O_ACCMODE) == O_WRONLY;

	switch (status->st_mode & S_IFMT) {
	case S_IFREG:
		return only_written || (flags & O_APPEND) != 0;
	case S_IFIFO:
		return only_written;
	case S_IFCHR:
		return only_written || isatty(STDERR_FILENO);
	default:
		return false;
	}
}

/*
 * -1, with errno, where it is not: the program was started without it, or has closed it and opened
 * something of its own that got its number.
 */
static int stderr_now(void)
{
	struct stat status;

	if (has_stderr && own_file_facts(STDERR_FILENO, &status) &&
	    ((status.st_dev == first_stderr.st_dev && status.st_ino == first_stderr.st_ino) ||
	     is_stderr(&status))) {
		return STDERR_FILENO;
	}
	errno = EBADF;
	return -1;
}

void cw_write_message(const char *text, size_t length)
{
	int saved_errno = errno;
	int fd = stderr_now();

	if (fd >= 0) {
		(void)write_all(fd, text, length);
	}
	errno = saved_errno;
}

static void say(const char *format, va_list arguments)
{
	char line[LINE_SIZE];
	size_t length = cw_format(line, sizeof(line), "cuweir[%d]: ", (int)getpid());

	length += cw_vformat(line + length, sizeof(line) - length - 1, format, arguments);
	line[length++] = '\n';
	cw_write_message(line, length);
}

void cw_message(enum cw_level level, const char *format, ...)
{
	va_list arguments;

	if ((int)level > cw_config.verbose) {
		return;
	}
	va_start(arguments, format);
	say(format, arguments);
	va_end(arguments);
}

void cw_message_limited(enum cw_level level, unsigned int *count, const char *format, ...)
{
	unsigned int seen;
	va_list arguments;

	if ((int)level > cw_config.verbose) {
		return;
	}
	seen = __atomic_fetch_add(count, 1, __ATOMIC_RELAXED);
	if (seen >= REPEATS_SHOWN) {
		return;
	}
	va_start(arguments, format);
	say(format, arguments);
	va_end(arguments);
	if (seen + 1 == REPEATS_SHOWN) {
		cw_message(level, "the last message has come %d times and is not shown again",
			   REPEATS_SHOWN);
	}
}

static void expand_pattern(const char *pattern, char *buffer, size_t size)
{
	struct text text = { .buffer = buffer, .size = size };

	for (; *pattern != '\0'; pattern++) {
		if (pattern[0] == '%' && pattern[1] == 'p') {
			put_number(&text, (unsigned long long)getpid(), 10);
			pattern++;
		} else if (pattern[0] == '%' && pattern[1] == '%') {
			put(&text, '%');
			pattern++;
		} else {
			put(&text, *pattern);
		}
	}
	buffer[text.length] = '\0';
}

bool cw_message_open_log(const char *pattern)
{
	size_t length = 0;
	int error;

	if (pattern[0] != '/' && cw_config.directory[0] != '\0') {
		length = cw_format(log_path, sizeof(log_path), "%s/", cw_config.directory);
	}
	expand_pattern(pattern, log_path + length, sizeof(log_path) - length);
	error = own_file_open(&log_file, log_path, 0);
	if (error != 0) {
		cw_message(CW_ERROR,
			   "CUWEIR_LOG=\"%s\": cannot open %s for writing (error %d); want a file "
			   "name in a directory that exists, %%p for the process id; lines go to "
			   "stderr",
			   pattern, log_path, error);
	}
	return error == 0;
}

/* -1, with errno, where the program has closed it, and it cannot be had again. */
static int log_fd(void)
{
	return __atomic_load_n(&log_file.fd, __ATOMIC_ACQUIRE) < 0
		       ? stderr_now() : own_file_now(&log_file, log_path);
}

/* Once; of stderr there is nobody to tell. */
static CW_COLD void tell_lost(int error)
{
	static atomic_bool told;

	if (__atomic_load_n(&log_file.fd, __ATOMIC_ACQUIRE) >= 0 && !atomic_exchange(&told, true)) {
		cw_message(CW_ERROR, "CUWEIR_LOG=\"%s\": cannot be written (error %d); lines are lost",
			   cw_config.log, error);
	}
}

void cw_log_write(const char *text, size_t length)
{
	int saved_errno = errno;
	int fd = log_fd();
	int error = fd >= 0 ? write_all(fd, text, length) : errno;

	errno = saved_errno;
	if (error != 0) {
		tell_lost(error);
	}
}

/* In one write, so that lines of several processes do not mix; the rest of a short one follows. */
void cw_log_line(const char *line, size_t length)
{
	struct quiet_write quiet;
	struct iovec parts[2];
	int saved_errno = errno;
	int fd = log_fd();
	int error = 0;
	ssize_t written;

	if (length > LOG_LINE_MAX) {
		length = LOG_LINE_MAX;
	}
	parts[0].iov_base = (void *)(uintptr_t)line;
	parts[0].iov_len = length;
	parts[1].iov_base = (void *)(uintptr_t)"\n";
	parts[1].iov_len = 1;
	quiet_write_begin(&quiet);
	while ((written = writev(fd, parts, 2)) < 0 && (error = errno) == EINTR) {
		error = 0;
	}
	quiet_write_end(&quiet, error);
	if (error != 0) {
		tell_lost(error);
	} else if ((size_t)written <= length) {
		cw_log_write(line + written, length - (size_t)written);
		cw_log_write("\n", 1);
	}
	errno = saved_errno;
}
