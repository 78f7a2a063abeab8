/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The k=v,k=v arguments of a policy, read in place: no copy, no allocation. A policy calls
 * this in `open` alone; it depends on the public header and libc, nothing of the shim.
 */
#ifndef CUWEIR_POLICY_ARGS_H
#define CUWEIR_POLICY_ARGS_H

#include <cuweir/policy.h>

#include <stdio.h>
#include <string.h>

/* A piece of the argument string; not NUL-terminated. */
struct args_text {
	const char *start;
	size_t length;
};

struct args_pair {
	struct args_text whole;
	struct args_text key;
	struct args_text value; /* start is NULL where there is no '=' */
	unsigned int number;    /* from 1, for messages */
};

/* Cuts the next piece that `separator` ends off *rest; false when nothing is left. */
static inline bool args_cut(struct args_text *rest, char separator, struct args_text *ret_piece)
{
	if (rest->start == NULL) {
		return false;
	}
	const char *end = (const char *)memchr(rest->start, separator, rest->length);
	ret_piece->start = rest->start;
	if (end == NULL) {
		ret_piece->length = rest->length;
		rest->start = NULL;
		return true;
	}
	ret_piece->length = (size_t)(end - rest->start);
	rest->start = end + 1;
	rest->length -= ret_piece->length + 1;
	return true;
}

static inline struct args_text args_begin(const char *arguments)
{
	struct args_text rest = { arguments, strlen(arguments) };
	if (rest.length == 0) {
		rest.start = NULL;
	}
	return rest;
}

/* The next pair; `pair` is zeroed before the first. */
static inline bool args_next(struct args_text *rest, struct args_pair *pair)
{
	if (!args_cut(rest, ',', &pair->whole)) {
		return false;
	}
	struct args_text value = pair->whole;
	args_cut(&value, '=', &pair->key);
	pair->value = value;
	pair->number++;
	return true;
}

/* So many hundredths of it, rounded down; no product overflows. */
static inline uint64_t args_percent_of(uint64_t bytes, unsigned int percent)
{
	return bytes / 100 * percent + bytes % 100 * percent / 100;
}

/* The name of a file as it is meant: from where the program was started. False: too long. */
static inline bool args_path(const struct cuweir_host *host, struct args_text name, char *ret_path,
			     size_t size)
{
	bool is_relative = name.length == 0 || name.start[0] != '/';
	const char *directory = is_relative && host->directory != NULL ? host->directory : "";
	int length = snprintf(ret_path, size, "%s%s%.*s", directory,
			      directory[0] != '\0' ? "/" : "", (int)name.length, name.start);
	return length >= 0 && (size_t)length < size;
}

static inline bool args_is(struct args_text text, const char *word)
{
	return text.start != NULL && strlen(word) == text.length &&
	       memcmp(text.start, word, text.length) == 0;
}

/* A decimal number, up to what ends it; false for none, or for one above 2^64-1. */
static inline bool args_digits(struct args_text *text, uint64_t *ret_number)
{
	uint64_t number = 0;
	size_t i = 0;
	for (; i < text->length && text->start[i] >= '0' && text->start[i] <= '9'; i++) {
		uint64_t digit = (uint64_t)(text->start[i] - '0');
		if (number > (UINT64_MAX - digit) / 10) {
			return false;
		}
		number = number * 10 + digit;
	}
	if (i == 0) {
		return false;
	}
	text->start += i;
	text->length -= i;
	*ret_number = number;
	return true;
}

static inline bool args_number(struct args_text text, uint64_t *ret_number)
{
	uint64_t number;
	if (text.start == NULL || !args_digits(&text, &number) || text.length != 0) {
		return false;
	}
	*ret_number = number;
	return true;
}

/* A size: a number, then nothing or K, M, G, T (of 1024; k, KB and KiB are the same). */
static inline bool args_size(struct args_text text, uint64_t *ret_bytes)
{
	static const char units[] = "KMGTkmgt";
	uint64_t number;
	if (text.start == NULL || !args_digits(&text, &number)) {
		return false;
	}
	unsigned int shift = 0;
	if (text.length > 0) {
		const char *unit = (const char *)memchr(units, text.start[0], sizeof(units) - 1);
		if (unit == NULL) {
			return false;
		}
		shift = 10 * (unsigned int)((unit - units) % 4 + 1);
		text.start++;
		text.length--;
	}
	if (text.length != 0 && !args_is(text, "B") && !args_is(text, "b") &&
	    !args_is(text, "iB")) {
		return false;
	}
	if (number > UINT64_MAX >> shift) {
		return false;
	}
	*ret_bytes = number << shift;
	return true;
}

/* A size, or hundredths of a device's ("80%", up to 100), which *ret_percent is then. */
static inline bool args_share(struct args_text text, uint64_t *ret_bytes,
			      unsigned int *ret_percent)
{
	uint64_t number;
	if (text.length > 1 && text.start != NULL && text.start[text.length - 1] == '%') {
		text.length--;
		if (!args_number(text, &number) || number == 0 || number > 100) {
			return false;
		}
		*ret_percent = (unsigned int)number;
		*ret_bytes = 0;
		return true;
	}
	*ret_percent = 0;
	return args_size(text, ret_bytes);
}

/* A time: a number and ns, us, ms, s or m; a bare 0 too. */
static inline bool args_time(struct args_text text, uint64_t *ret_ns)
{
	static const struct {
		const char *unit;
		uint64_t ns;
	} units[] = {
		{ "ns", 1 },          { "us", 1000 },         { "ms", 1000000 },
		{ "s", 1000000000 },  { "m", 60000000000ull },
	};
	uint64_t number;
	if (text.start == NULL || !args_digits(&text, &number)) {
		return false;
	}
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (args_is(text, units[i].unit) && number <= UINT64_MAX / units[i].ns) {
			*ret_ns = number * units[i].ns;
			return true;
		}
	}
	*ret_ns = 0;
	return number == 0 && text.length == 0;
}

static inline bool args_flag(struct args_text text, bool *ret_flag)
{
	*ret_flag = args_is(text, "1");
	return *ret_flag || args_is(text, "0");
}

/* Names of kinds joined by '+', "all" among them. */
static inline bool args_kinds(struct args_text text, uint32_t *ret_mask)
{
	static const char *const names[CUWEIR_KIND_COUNT] = {
		"none",     "device",  "managed", "host",          "registered",
		"imported", "virtual", "pool",    "graph_planned",
	};
	uint32_t mask = 0;
	struct args_text name;
	while (args_cut(&text, '+', &name)) {
		uint32_t found = args_is(name, "all") ? (1u << CUWEIR_KIND_COUNT) - 2 : 0;
		for (uint32_t kind = 1; kind < CUWEIR_KIND_COUNT; kind++) {
			if (args_is(name, names[kind])) {
				found = CUWEIR_KIND_BIT(kind);
			}
		}
		if (found == 0) {
			return false;
		}
		mask |= found;
	}
	*ret_mask = mask;
	return mask != 0;
}

/* Says which argument is wrong and what would be right; returns what `open` returns. */
static inline int args_refuse(const struct cuweir_host *host, const struct args_pair *pair,
			      const char *want)
{
	char reason[512];
	int length = (int)(pair->whole.length > 200 ? 200 : pair->whole.length);
	snprintf(reason, sizeof(reason), "argument %u, \"%.*s\": want %s", pair->number, length,
		 pair->whole.start, want);
	return host->refuse(host, reason);
}

#endif
