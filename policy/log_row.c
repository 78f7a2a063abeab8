/* SPDX-License-Identifier: Apache-2.0 */
#include "log_row.h"

#include <string.h>
#include <time.h>

/*
 * Nothing here looks for the end of the buffer: numbers have at most 20 digits, names of calls
 * are cut, and so the longest row of each format is known and fits (see test_log_row).
 */
#define CALL_MAX 80

/* Text in a number has its first letter in the lowest byte. */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define LITTLE(text) (text)
#else
#define LITTLE(text) __builtin_bswap64(text)
#endif

#define PUT(at, text) (memcpy(at, text, sizeof(text) - 1), (at) + sizeof(text) - 1)

static char *put_text(char *at, const char *text)
{
	for (size_t i = 0; i < CALL_MAX && text[i] != '\0'; i++) {
		*at++ = text[i];
	}
	return at;
}

static const char pairs[] = "00010203040506070809"
			    "10111213141516171819"
			    "20212223242526272829"
			    "30313233343536373839"
			    "40414243444546474849"
			    "50515253545556575859"
			    "60616263646566676869"
			    "70717273747576777879"
			    "80818283848586878889"
			    "90919293949596979899";

static char *put_two(char *at, unsigned int number)
{
	memcpy(at, pairs + 2 * number, 2);
	return at + 2;
}

/* Eight decimal digits at once, of a number below 10^8: halves, quarters, digits, letters. */
static inline uint64_t decimal_digits(uint32_t number)
{
	uint64_t halves = number / 10000 | (uint64_t)(number % 10000) << 32;
	uint64_t hundreds = (halves * 10486 >> 20) & 0x0000007f0000007full;
	uint64_t quarters = hundreds | (halves - 100 * hundreds) << 16;
	uint64_t tens = (quarters * 103 >> 10) & 0x000f000f000f000full;
	return (tens | (quarters - 10 * tens) << 8) + 0x3030303030303030ull;
}

/* A number below 10^8, without leading zeros. Writes up to 8 bytes beyond its end. */
static inline char *put_small(char *at, uint32_t number)
{
	uint64_t digits = decimal_digits(number);
	unsigned int zeros = (unsigned int)__builtin_ctzll((digits & 0x0f0f0f0f0f0f0f0full) |
							   1ull << 63) / 8;
	digits = LITTLE(digits >> 8 * zeros);
	memcpy(at, &digits, 8);
	return at + 8 - zeros;
}

/* At most 20 digits: one more call of its own. Apart, so that the common case calls nothing. */
static __attribute__((noinline)) char *put_large(char *at, uint64_t number)
{
	uint64_t upper = number / 100000000;
	uint64_t digits = LITTLE(decimal_digits((uint32_t)(number % 100000000)));
	at = upper >= 100000000 ? put_large(at, upper) : put_small(at, (uint32_t)upper);
	memcpy(at, &digits, 8);
	return at + 8;
}

/* Writes up to 8 bytes beyond its end: the buffer has room. */
static inline char *put_decimal(char *at, uint64_t number)
{
	return __builtin_expect(number >= 100000000, 0) ? put_large(at, number)
							: put_small(at, (uint32_t)number);
}

/* At least `width` characters, with blanks on the left. */
static char *put_wide(char *at, uint64_t number, unsigned int width)
{
	char digits[32];
	size_t length = (size_t)(put_decimal(digits, number) - digits);
	for (; width > length; width--) {
		*at++ = ' ';
	}
	memcpy(at, digits, length);
	return at + length;
}

typedef unsigned char bytes16 __attribute__((vector_size(16)));
#ifdef __clang__
#define INTERLEAVE(a, b)                                                                           \
	__builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#else
#define INTERLEAVE(a, b)                                                                           \
	__builtin_shuffle(a, b,                                                                    \
			  (bytes16){ 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23 })
#endif

typedef signed char flags16 __attribute__((vector_size(16)));

/* All 16 digits at once, of which those after the leading zeros are copied. */
static char *put_hex(char *at, uint64_t number)
{
	uint64_t first = LITTLE(__builtin_bswap64(number)); /* the highest byte comes first */
	uint64_t halves[2] = { first, 0 };
	bytes16 low;
	memcpy(&low, halves, sizeof(low));
	bytes16 digits = INTERLEAVE((low >> 4) & 15, low & 15);
	flags16 is_letter = (flags16)digits > 9;
	digits += '0' + ((bytes16)is_letter & ('a' - '0' - 10));
	char text[32];
	memcpy(text, &digits, sizeof(digits));
	unsigned int zeros = (unsigned int)__builtin_clzll(number | 1) / 4;
	at = PUT(at, "0x");
	memcpy(at, text + zeros, 16);
	return at + 16 - zeros;
}

/* As glibc's %p, which RMM's files have and its readers know. */
static char *put_pointer(char *at, const void *pointer)
{
	return pointer == NULL ? PUT(at, "(nil)") : put_hex(at, (uintptr_t)pointer);
}

static char *put_micros(char *at, const struct timespec *now)
{
	uint64_t digits = LITTLE(decimal_digits((uint32_t)now->tv_nsec / 1000) >> 16);
	memcpy(at, &digits, 8);
	return at + 6;
}

/* What most rows of a thread begin with like the one before: "THREAD,HH:MM:SS." */
struct beginning {
	uint64_t thread;
	time_t local; /* second in its zone */
	unsigned int length;
	char text[32];
};

static __attribute__((noinline)) void begin_anew(struct beginning *begin, uint64_t thread,
						 time_t local)
{
	long day = 24 * 60 * 60;
	unsigned int second = (unsigned int)((local + day) % day);
	char *at = put_decimal(begin->text, thread);
	*at++ = ',';
	at = put_two(at, second / 3600);
	*at++ = ':';
	at = put_two(at, second / 60 % 60);
	*at++ = ':';
	at = put_two(at, second % 60);
	*at++ = '.';
	begin->length = (unsigned int)(at - begin->text);
	begin->thread = thread;
	begin->local = local;
}

/* Local time of day. A change of the zone's offset during the run is not followed. */
static char *put_thread_and_time(char *at, const struct log_row *row, uint64_t thread)
{
	static _Thread_local struct beginning begin __attribute__((tls_model("initial-exec")));
	struct timespec now = { 0 };
	clock_gettime(CLOCK_REALTIME, &now);
	time_t local = now.tv_sec + row->zone_offset;
	if (local != begin.local || thread != begin.thread) {
		begin_anew(&begin, thread, local);
	}
	memcpy(at, begin.text, sizeof(begin.text));
	return put_micros(at + begin.length, &now);
}

/* "  64.0 MiB", rounded down; bytes have no fraction. */
static char *put_rounded(char *at, uint64_t bytes)
{
	static const char units[][4] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	unsigned int unit = 0;
	while (unit < 6 && bytes >> (10 * unit) >= 1024) {
		unit++;
	}
	*at++ = ' ';
	if (unit == 0) {
		at = put_wide(at, bytes, 5);
	} else {
		/* The remainder below the unit, of which ten bits are enough for a tenth. */
		uint64_t tenth = (bytes >> (10 * (unit - 1)) & 1023) * 10 / 1024;
		at = put_wide(at, bytes >> (10 * unit), 3);
		*at++ = '.';
		*at++ = (char)('0' + tenth);
	}
	*at++ = ' ';
	return put_text(at, units[unit]);
}

static const char *kind_name(uint32_t kind)
{
	static const char *const names[CUWEIR_KIND_COUNT] = {
		"none",       "device",   "managed", "host", "registered",
		"imported",   "virtual",  "pool",    "planned",
	};
	return kind < CUWEIR_KIND_COUNT ? names[kind] : "unknown";
}

static char *put_csv(char *at, const struct log_row *row, enum log_action action,
		     const struct cuweir_event *event)
{
	at = put_thread_and_time(at, row, event->thread);
	switch (action) {
	case LOG_ALLOCATE:
		at = PUT(at, ",allocate,");
		break;
	case LOG_FAILURE:
		at = PUT(at, ",allocate failure,");
		break;
	case LOG_FREE:
		at = PUT(at, ",free,");
		break;
	}
	at = put_pointer(at, action == LOG_FAILURE ? NULL : event->pointer);
	*at++ = ',';
	at = put_decimal(at, event->requested);
	*at++ = ',';
	if (event->stream == NULL) {
		*at++ = '0';
		return at;
	}
	return put_pointer(at, event->stream);
}

static char *put_place(char *at, const struct cuweir_event *event)
{
	at = put_text(at, event->call);
	if (event->device >= 0) {
		at = PUT(at, "  device ");
		at = put_decimal(at, (uint64_t)event->device);
	}
	if (event->kind != CUWEIR_KIND_DEVICE) {
		at = put_text(at, event->device >= 0 ? " " : "  ");
		at = put_text(at, kind_name(event->kind));
	}
	return at;
}

static char *put_failure(char *at, const struct cuweir_event *event)
{
	at = PUT(at, "  failed with ");
	at = put_decimal(at, (uint64_t)event->status);
	if (event->status == CUWEIR_ERROR_OUT_OF_MEMORY) {
		at = PUT(at, " (out of memory)");
	}
	if (event->retry_count > 0) {
		at = PUT(at, " at retry ");
		at = put_decimal(at, event->retry_count);
	}
	return at;
}

/* The total is the one that this operation leads to; a free is told before it moves. */
static uint64_t total_of(enum log_action action, const struct cuweir_event *event)
{
	if (action != LOG_FREE || event->total_after != event->total_before) {
		return event->total_after;
	}
	return event->total_after > event->charged ? event->total_after - event->charged : 0;
}

static char *put_line(char *at, const struct log_row *row, enum log_action action,
		      const struct cuweir_event *event)
{
	at = PUT(at, "cuweir[");
	at = put_decimal(at, row->pid);
	at = PUT(at, "]: ");
	*at++ = "+!-"[action];
	at = put_rounded(at, event->requested);
	at = PUT(at, " (");
	at = put_decimal(at, event->requested);
	if (action != LOG_FAILURE && event->charged != event->requested) {
		at = PUT(at, ", charged ");
		at = put_decimal(at, event->charged);
	}
	at = PUT(at, ")  ");
	at = put_place(at, event);
	if (action == LOG_FAILURE) {
		at = put_failure(at, event);
	} else {
		at = PUT(at, "  ");
		at = put_pointer(at, event->pointer);
	}
	if (event->stream != NULL) {
		at = PUT(at, "  stream ");
		at = put_pointer(at, event->stream);
	}
	at = PUT(at, "  total");
	at = put_rounded(at, total_of(action, event));
	at = PUT(at, " (");
	at = put_decimal(at, total_of(action, event));
	*at++ = ')';
	return at;
}

/* Seconds since 1970, the fraction in microseconds. */
static char *put_epoch(char *at)
{
	struct timespec now = { 0 };
	clock_gettime(CLOCK_REALTIME, &now);
	at = put_decimal(at, (uint64_t)now.tv_sec);
	*at++ = '.';
	return put_micros(at, &now);
}

/* One object; addresses are texts, since readers keep numbers in 53 bits. */
static char *put_json(char *at, const struct log_row *row, enum log_action action,
		      const struct cuweir_event *event)
{
	static const char *const actions[] = { "allocate", "failure", "free" };
	at = PUT(at, "{\"time\":");
	at = put_epoch(at);
	at = PUT(at, ",\"pid\":");
	at = put_decimal(at, row->pid);
	at = PUT(at, ",\"thread\":");
	at = put_decimal(at, event->thread);
	at = PUT(at, ",\"action\":\"");
	at = put_text(at, actions[action]);
	at = PUT(at, "\",\"call\":\"");
	at = put_text(at, event->call);
	at = PUT(at, "\",\"kind\":\"");
	at = put_text(at, kind_name(event->kind));
	at = PUT(at, "\",\"device\":");
	if (event->device < 0) {
		*at++ = '-';
	}
	at = put_decimal(at, (uint64_t)(event->device < 0 ? -(int64_t)event->device :
							    event->device));
	at = PUT(at, ",\"pointer\":\"");
	at = put_hex(at, action == LOG_FAILURE ? 0 : (uintptr_t)event->pointer);
	at = PUT(at, "\",\"size\":");
	at = put_decimal(at, event->requested);
	at = PUT(at, ",\"charged\":");
	at = put_decimal(at, event->charged);
	at = PUT(at, ",\"stream\":\"");
	at = put_hex(at, (uintptr_t)event->stream);
	at = PUT(at, "\",\"status\":");
	at = put_decimal(at, (uint32_t)event->status);
	at = PUT(at, ",\"retry\":");
	at = put_decimal(at, event->retry_count);
	at = PUT(at, ",\"total\":");
	at = put_decimal(at, total_of(action, event));
	*at++ = '}';
	return at;
}

size_t log_row_format(const struct log_row *row, enum log_action action,
		      const struct cuweir_event *event, char buffer[LOG_ROW_SIZE])
{
	char *end = row->format == LOG_CSV  ? put_csv(buffer, row, action, event) :
		    row->format == LOG_JSON ? put_json(buffer, row, action, event) :
					      put_line(buffer, row, action, event);
	*end++ = '\n';
	*end = '\0';
	return (size_t)(end - buffer);
}
