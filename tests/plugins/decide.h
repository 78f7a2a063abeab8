/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the policy deciding.c answers: a function of its seed and of how often it was asked, so
 * that a model of the rules can tell beforehand what it will say.
 */
#ifndef DECIDE_H
#define DECIDE_H

#include <stdbool.h>
#include <stdint.h>

enum decide_what {
	DECIDE_VETO,   /* on_alloc_threshold */
	DECIDE_STATUS, /* on_dealloc_threshold */
	DECIDE_RETRY,  /* on_alloc_failure */
	DECIDE_ADMIT,
	DECIDE_SWITCH, /* of debug, in on_alloc_threshold */
	DECIDE_NEST,   /* memory of its own, in on_alloc_threshold and on_alloc_failure */
	DECIDE_UP,     /* the alloc thresholds */
	DECIDE_DOWN,
	DECIDE_KINDS,
};

/* More than these questions in a row about one allocation are never said yes to. */
enum { DECIDE_RETRIES = 4, DECIDE_RANGE = 1 << 22 };

static inline uint64_t decide_draw(uint64_t seed, enum decide_what what, uint64_t nth)
{
	uint64_t x = seed * 0x9e3779b97f4a7c15u + (uint64_t)what * 0xd1b54a32d192ed03u + nth + 1;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

static inline bool decide_yes(uint64_t draw, unsigned int percent)
{
	return draw % 100 < percent;
}

static inline int decide_status(uint64_t draw, unsigned int percent)
{
	static const int statuses[] = { 2, 2, 46, 801, 7777 };

	return decide_yes(draw, percent) ? statuses[draw / 100 % 5] : 0;
}

/* A threshold: small ones, ordinary ones, and such as no total reaches. */
static inline uint64_t decide_threshold(uint64_t draw)
{
	switch (draw % 16) {
	case 0:
		return 0;
	case 1:
		return UINT64_MAX;
	case 2:
		return draw >> 16;
	case 3:
		return (draw >> 16) % 64 << 12; /* hit exactly, now and then */
	}
	return (draw >> 16) % DECIDE_RANGE;
}

#endif
