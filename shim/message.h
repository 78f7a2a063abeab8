/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What cuweir says: one line, one write(2), to stderr or to the file of CUWEIR_LOG, errno
 * kept, no malloc and no stdio. Any thread, any time after the settings were read.
 */
#ifndef CW_MESSAGE_H
#define CW_MESSAGE_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include "common.h"

/* Levels of CUWEIR_VERBOSE: a message shows when its level is not above the setting. */
enum cw_level {
	CW_ERROR = 1,  /* something asked for does not work */
	CW_NOTICE = 2, /* once-only facts */
	CW_DETAIL = 3, /* each decision */
};

/* "cuweir[pid]: " + text, to stderr. */
void cw_message(enum cw_level level, const char *format, ...) CW_PRINTF(2, 3);

/* The same, at most 16 times for one `count`, which starts at zero. */
void cw_message_limited(enum cw_level level, unsigned int *count, const char *format, ...)
	CW_PRINTF(3, 4);

/*
 * The printf subset %s %c %d %u %x %p with l, ll and z, and %%. Always terminates; returns the
 * length written, cut to size - 1.
 */
size_t cw_format(char *buffer, size_t size, const char *format, ...) CW_PRINTF(3, 4);
size_t cw_vformat(char *buffer, size_t size, const char *format, va_list arguments)
	CW_PRINTF(3, 0);

/* 1536 -> "1.5 KiB" in a buffer of at least 16 bytes; returns the buffer. */
const char *cw_human_size(char buffer[16], unsigned long long bytes);

/* At load: what standard error is, so that what has its number later does not get our lines. */
void cw_message_note_stderr(void);

/* Writes all of it to stderr, through signals and short writes; errno kept. */
void cw_write_message(const char *text, size_t length);

/* Opens CUWEIR_LOG; false, after a message, when it cannot. Called once, at the opening. */
bool cw_message_open_log(const char *pattern);

/* Text with its newlines, to the same place, through signals and short writes. */
void cw_log_write(const char *text, size_t length);

/* A line (the newline is added) to CUWEIR_LOG, or to stderr. */
void cw_log_line(const char *line, size_t length);

#endif
