/* SPDX-License-Identifier: Apache-2.0 */
#include "log_row.h"

#include <time.h>

struct writer {
	char *next;
	char *end;
};

static void put_char(struct writer *writer, char c)
{
	if (writer->next < writer->end) {
		*writer->next++ = c;
	}
}

static void put_text(struct writer *writer, const char *text)
{
	for (; *text != '\0'; text++) {
		put_char(writer, *text);
	}
}

/* At least `width` characters, filled with `fill` on the left. */
static void put_number(struct writer *writer, uint64_t number, unsigned int base,
		       unsigned int width, char fill)
{
	char digits[20]; /* 2^64-1 has 20 */
	unsigned int count = 0;
	do {
		digits[count++] = "0123456789abcdef"[number % base];
		number /= base;
	} while (number != 0);
	for (; width > count; width--) {
		put_char(writer, fill);
	}
	while (count > 0) {
		put_char(writer, digits[--count]);
	}
}

static void put_decimal(struct writer *writer, uint64_t number)
{
	put_number(writer, number, 10, 0, ' ');
}

/* As glibc's %p, which RMM's files have and its readers know. */
static void put_pointer(struct writer *writer, const void *pointer)
{
	if (pointer == NULL) {
		put_text(writer, "(nil)");
		return;
	}
	put_text(writer, "0x");
	put_number(writer, (uintptr_t)pointer, 16, 0, ' ');
}

/* Local time of day. A change of the zone's offset during the run is not followed. */
static void put_time(struct writer *writer, long zone_offset)
{
	struct timespec now = { 0 };
	clock_gettime(CLOCK_REALTIME, &now);
	long day = 24 * 60 * 60;
	long second = (long)((now.tv_sec + zone_offset + day) % day);
	put_number(writer, (uint64_t)(second / 3600), 10, 2, '0');
	put_char(writer, ':');
	put_number(writer, (uint64_t)(second / 60 % 60), 10, 2, '0');
	put_char(writer, ':');
	put_number(writer, (uint64_t)(second % 60), 10, 2, '0');
	put_char(writer, '.');
	put_number(writer, (uint64_t)now.tv_nsec / 1000, 10, 6, '0');
}

/* "  64.0 MiB", rounded down; bytes have no fraction. */
static void put_rounded(struct writer *writer, uint64_t bytes)
{
	static const char units[][4] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	unsigned int unit = 0;
	while (unit < 6 && bytes >> (10 * unit) >= 1024) {
		unit++;
	}
	if (unit == 0) {
		put_number(writer, bytes, 10, 6, ' ');
	} else {
		/* The remainder below the unit, of which ten bits are enough for a tenth. */
		uint64_t tenth = (bytes >> (10 * (unit - 1)) & 1023) * 10 / 1024;
		put_number(writer, bytes >> (10 * unit), 10, 4, ' ');
		put_char(writer, '.');
		put_number(writer, tenth, 10, 1, ' ');
	}
	put_char(writer, ' ');
	put_text(writer, units[unit]);
}

static const char *kind_name(uint32_t kind)
{
	static const char *const names[CUWEIR_KIND_COUNT] = {
		"none",       "device",   "managed", "host", "registered",
		"imported",   "virtual",  "pool",    "planned",
	};
	return kind < CUWEIR_KIND_COUNT ? names[kind] : "unknown";
}

static void put_csv(struct writer *writer, const struct log_row *row, enum log_action action,
		    const struct cuweir_event *event)
{
	static const char *const actions[] = { "allocate", "allocate failure", "free" };
	put_decimal(writer, event->thread);
	put_char(writer, ',');
	put_time(writer, row->zone_offset);
	put_char(writer, ',');
	put_text(writer, actions[action]);
	put_char(writer, ',');
	put_pointer(writer, action == LOG_FAILURE ? NULL : event->pointer);
	put_char(writer, ',');
	put_decimal(writer, event->requested);
	put_char(writer, ',');
	if (event->stream == NULL) {
		put_char(writer, '0');
	} else {
		put_pointer(writer, event->stream);
	}
}

static void put_place(struct writer *writer, const struct cuweir_event *event)
{
	put_text(writer, event->call);
	if (event->device >= 0) {
		put_text(writer, "  device ");
		put_decimal(writer, (uint64_t)event->device);
	}
	if (event->kind != CUWEIR_KIND_DEVICE) {
		put_text(writer, event->device >= 0 ? " " : "  ");
		put_text(writer, kind_name(event->kind));
	}
}

static void put_failure(struct writer *writer, const struct cuweir_event *event)
{
	put_text(writer, "  failed with ");
	put_decimal(writer, (uint64_t)event->status);
	if (event->status == CUWEIR_ERROR_OUT_OF_MEMORY) {
		put_text(writer, " (out of memory)");
	}
	if (event->retry_count > 0) {
		put_text(writer, " at retry ");
		put_decimal(writer, event->retry_count);
	}
}

/* The total is the one that this operation leads to; a free is told before it moves. */
static uint64_t total_of(enum log_action action, const struct cuweir_event *event)
{
	if (action != LOG_FREE || event->total_after != event->total_before) {
		return event->total_after;
	}
	return event->total_after > event->charged ? event->total_after - event->charged : 0;
}

static void put_line(struct writer *writer, const struct log_row *row, enum log_action action,
		     const struct cuweir_event *event)
{
	put_text(writer, "cuweir[");
	put_decimal(writer, row->pid);
	put_text(writer, "]: ");
	put_char(writer, "+!-"[action]);
	put_rounded(writer, event->requested);
	put_text(writer, " (");
	put_decimal(writer, event->requested);
	if (action != LOG_FAILURE && event->charged != event->requested) {
		put_text(writer, ", charged ");
		put_decimal(writer, event->charged);
	}
	put_text(writer, ")  ");
	put_place(writer, event);
	if (action == LOG_FAILURE) {
		put_failure(writer, event);
	} else {
		put_text(writer, "  ");
		put_pointer(writer, event->pointer);
	}
	if (event->stream != NULL) {
		put_text(writer, "  stream ");
		put_pointer(writer, event->stream);
	}
	put_text(writer, "  total");
	put_rounded(writer, total_of(action, event));
	put_text(writer, " (");
	put_decimal(writer, total_of(action, event));
	put_char(writer, ')');
}

size_t log_row_format(const struct log_row *row, enum log_action action,
		      const struct cuweir_event *event, char buffer[LOG_ROW_SIZE])
{
	struct writer writer = { buffer, buffer + LOG_ROW_SIZE - 2 };
	if (row->format == LOG_CSV) {
		put_csv(&writer, row, action, event);
	} else {
		put_line(&writer, row, action, event);
	}
	*writer.next++ = '\n';
	*writer.next = '\0';
	return (size_t)(writer.next - buffer);
}
