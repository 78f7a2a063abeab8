/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUWEIR_SIM_TRACE: one line per driver call, one write(2) per line.
 *
 *   cuMemAlloc_v2 size=100 -> dptr=D0+0x200 = 0
 *
 * Addresses are written by what they point into (D0+offset for a device's memory, S+offset for
 * pinned and managed memory, h+number for a handle, "host" for any other), so that the traces of
 * two runs can be compared line by line.
 */
#include <ctype.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "internal.h"
#include "private.h"

void sim_trace_open(const char *pattern)
{
	char path[1024];
	size_t n = 0;

	if (pattern == NULL || *pattern == '\0') {
		return;
	}
	for (const char *p = pattern; *p != '\0' && n + 12 < sizeof(path); p++) {
		if (p[0] == '%' && p[1] == 'p') {
			n += (size_t)snprintf(path + n, 12, "%d", (int)getpid());
			p++;
		} else {
			path[n++] = *p;
		}
	}
	path[n] = '\0';
	sim_set.trace_fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	if (sim_set.trace_fd < 0) {
		fprintf(stderr, "cuweir sim: cannot open trace %s\n", path);
	}
}

__attribute__((format(printf, 2, 3))) static void put(struct sim_line *l, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(l->text + l->len, sizeof(l->text) - 1 - l->len, fmt, ap);
	va_end(ap);
	if (n > 0) {
		l->len += (size_t)n;
		if (l->len > sizeof(l->text) - 2) {
			l->len = sizeof(l->text) - 2;
		}
	}
}

static void put_value(struct sim_line *l, uint64_t v)
{
	struct sim_arena *a = v >> 32 != 0 ? sim_arena_of(v) : NULL;

	if (a == &sim_system) {
		put(l, "S+0x%llx", (unsigned long long)(v - (uintptr_t)a->base));
	} else if (a != NULL) {
		for (int i = 0; i < sim_n_devices; i++) {
			if (a == &sim_devices[i].arena) {
				put(l, "D%d+0x%llx", i,
				    (unsigned long long)(v - (uintptr_t)a->base));
			}
		}
	} else if (sim_obj_offset(v) != 0) {
		put(l, "h+%llu", (unsigned long long)sim_obj_offset(v));
	} else if (v < 1ULL << 44) {
		put(l, "%llu", (unsigned long long)v);
	} else if (v >= 1ULL << 63) {
		put(l, "%lld", (long long)v);
	} else {
		put(l, "host");
	}
}

/* names is the text of the macro's argument list; "0" stands for an empty one. */
static void put_list(struct sim_line *l, const char *names, size_t n, const uint64_t *values)
{
	if (isdigit((unsigned char)names[0])) {
		return;
	}
	for (size_t i = 0; i < n; i++) {
		size_t end = strcspn(names, ",");
		size_t skip = 0, len = 0;

		/* "*dptr", "id != NULL", "SIM_OUT(p)" expanded: the first word is the name. */
		while (skip < end && !isalpha((unsigned char)names[skip])) {
			skip++;
		}
		while (isalnum((unsigned char)names[skip + len]) || names[skip + len] == '_') {
			len++;
		}
		put(l, " %.*s=", (int)len, names + skip);
		put_value(l, values[i]);
		names += end;
		names += strspn(names, ", ");
	}
}

void sim_trace_args(struct sim_line *l, enum sim_fn fn, const char *names, size_t n,
		    const uint64_t *values)
{
	l->len = 0;
	put(l, "%s", sim_fns[fn].symbol);
	put_list(l, names, n, values);
	put(l, " ->");
}

void sim_trace_outs(struct sim_line *l, const char *names, size_t n, const uint64_t *values)
{
	put_list(l, names, n, values);
}

void sim_trace_text(struct sim_line *l, const char *asked, const char *found)
{
	put(l, " \"%s\" %s", asked, found);
}

void sim_trace_end(struct sim_line *l, CUresult r)
{
	ssize_t n;

	put(l, " = %d", (int)r);
	l->text[l->len++] = '\n';
	n = write(sim_set.trace_fd, l->text, l->len);
	(void)n;
}
