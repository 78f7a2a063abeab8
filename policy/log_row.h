/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of the log, formatted without libc's help into a buffer of the caller's: any thread,
 * no allocation, no lock, no locale.
 */
#ifndef CUWEIR_POLICY_LOG_ROW_H
#define CUWEIR_POLICY_LOG_ROW_H

#include <cuweir/policy.h>

enum log_format {
	LOG_TEXT,
	LOG_CSV,
	LOG_JSON,
};

enum log_action {
	LOG_ALLOCATE,
	LOG_FAILURE,
	LOG_FREE,
};

struct log_row {
	enum log_format format;
	long zone_offset; /* seconds east of Greenwich */
	uint64_t pid;
};

/* No row is longer, newline included; names in it are cut. */
#define LOG_ROW_SIZE 640

#define LOG_CSV_HEADER "Thread,Time,Action,Pointer,Size,Stream"

/* Fills `buffer` with one row, newline and NUL at its end; returns its length without NUL. */
size_t log_row_format(const struct log_row *row, enum log_action action,
		      const struct cuweir_event *event, char buffer[LOG_ROW_SIZE]);

#endif
