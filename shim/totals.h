/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Totals: for each device and kind, the bytes the program holds now, the most it held, and
 * the bytes that policies hold back (D-11). Each cell has a cache line of its own.
 *
 * The value before an add or sub, and the value after it, are *the* before and after of that
 * operation (D-14): they come from one atomic operation, so that the operations on a cell
 * form one sequence without gaps, and a threshold between them is crossed exactly once.
 *
 * Any thread, any time, no lock, no memory taken; plain static storage.
 *
 * Relaxed order is enough everywhere here: each cell is one number, a read-modify-write sees
 * the latest value in any order, and nothing else is published through it.
 */
#ifndef CW_TOTALS_H
#define CW_TOTALS_H

#include <stddef.h>
#include <stdint.h>

#define CW_TOTAL_DEVICES 64
#define CW_TOTAL_KINDS 9 /* enum cuweir_kind; 0 is NONE */
#define CW_TOTAL_NO_DEVICE (-1)

struct cw_total {
	int64_t current;    /* below 0 only while an underflow is being mended, read as 0 */
	uint64_t peak;      /* since the last mark */
	int64_t held;
	uint64_t underflows;
	uint64_t peak_before; /* the highest of the time before the last mark */
	/* See plain.h: no policy has a threshold between band[0] and band[1]. */
	const uint64_t *band;
	uint64_t room_[2];
} __attribute__((aligned(64)));

/* Rows: no device, the devices, and one for all numbers beyond. */
extern __attribute__((visibility("hidden"))) struct cw_total
	cw_totals_[CW_TOTAL_DEVICES + 2][CW_TOTAL_KINDS];

/* The number of the cell, which other books of devices and kinds go by, too. */
static inline size_t cw_total_index(int device, unsigned kind)
{
	unsigned row = (unsigned)device + 1;

	if (__builtin_expect(row > CW_TOTAL_DEVICES, 0)) {
		row = device < 0 ? 0 : CW_TOTAL_DEVICES + 1;
	}
	if (__builtin_expect(kind >= CW_TOTAL_KINDS, 0)) {
		kind = 0;
	}
	return (size_t)row * CW_TOTAL_KINDS + kind;
}

static inline struct cw_total *cw_total_at(size_t index)
{
	return &cw_totals_[0][0] + index;
}

static inline struct cw_total *cw_total_cell(int device, unsigned kind)
{
	return cw_total_at(cw_total_index(device, kind));
}

void cw_total_raise_peak_(struct cw_total *cell, uint64_t value);
void cw_total_mend_(int64_t *value, uint64_t *underflows, int64_t before, int64_t bytes);

/* All but the peak, for a caller that sees to it. */
static inline uint64_t cw_total_add_only(struct cw_total *cell, uint64_t bytes)
{
	int64_t before = __atomic_fetch_add(&cell->current, (int64_t)bytes, __ATOMIC_RELAXED);

	return __builtin_expect(before < 0, 0) ? 0 : (uint64_t)before;
}

/* Returns the value before; the value after is that plus bytes. */
static inline uint64_t cw_total_add_at(struct cw_total *cell, uint64_t bytes)
{
	uint64_t before = cw_total_add_only(cell, bytes);
	uint64_t after = before + bytes;

	/*
	 * A peak only grows (but for a reset), so a stale one read here is too low at worst,
	 * and raising it looks again.
	 */
	if (after > __atomic_load_n(&cell->peak, __ATOMIC_RELAXED)) {
		cw_total_raise_peak_(cell, after);
	}
	return before;
}

static inline uint64_t cw_total_add(int device, unsigned kind, uint64_t bytes)
{
	return cw_total_add_at(cw_total_cell(device, kind), bytes);
}

/*
 * Returns the value before; the value after is that minus bytes, or 0 if that is less.
 *
 * Never below 0 (P-30), and without a compare-and-swap loop: a sub follows the removal of a
 * record, which exactly one thread gets, and which was inserted along with an add; so what
 * is subtracted was added before, and the subtraction alone is right. If a caller breaks
 * this, the sub itself sees it, from its own before: it adds back precisely what it took too
 * much, and counts it. Until then the cell is negative, which every reader takes for 0.
 */
static inline uint64_t cw_total_sub_at(struct cw_total *cell, uint64_t bytes)
{
	int64_t before = __atomic_fetch_sub(&cell->current, (int64_t)bytes, __ATOMIC_RELAXED);

	if (__builtin_expect(before < (int64_t)bytes, 0)) {
		cw_total_mend_(&cell->current, &cell->underflows, before, (int64_t)bytes);
	}
	return before < 0 ? 0 : (uint64_t)before;
}

static inline uint64_t cw_total_sub(int device, unsigned kind, uint64_t bytes)
{
	return cw_total_sub_at(cw_total_cell(device, kind), bytes);
}

/*
 * What a policy took from the driver and holds back from the program, and its release. A policy
 * that gives a block back to the driver within the program's free does so before the program's
 * bytes have become held: for that moment the cell is below 0, which readers take for 0.
 */
static inline void cw_total_hold(int device, unsigned kind, uint64_t bytes)
{
	struct cw_total *cell = cw_total_cell(device, kind);

	__atomic_fetch_add(&cell->held, (int64_t)bytes, __ATOMIC_RELAXED);
}

static inline void cw_total_unhold(int device, unsigned kind, uint64_t bytes)
{
	struct cw_total *cell = cw_total_cell(device, kind);

	__atomic_fetch_sub(&cell->held, (int64_t)bytes, __ATOMIC_RELAXED);
}

static inline uint64_t cw_total_current(int device, unsigned kind)
{
	int64_t value = __atomic_load_n(&cw_total_cell(device, kind)->current, __ATOMIC_RELAXED);

	return value < 0 ? 0 : (uint64_t)value;
}

static inline uint64_t cw_total_held(int device, unsigned kind)
{
	int64_t value = __atomic_load_n(&cw_total_cell(device, kind)->held, __ATOMIC_RELAXED);

	return value < 0 ? 0 : (uint64_t)value;
}

/* A figure that is asked for, and not counted by ourselves. */
static inline void cw_total_set_gauge(int device, unsigned kind, uint64_t bytes)
{
	struct cw_total *cell = cw_total_cell(device, kind);

	__atomic_store_n(&cell->current, (int64_t)bytes, __ATOMIC_RELAXED);
	cw_total_raise_peak_(cell, bytes);
}

static inline uint64_t cw_total_peak(int device, unsigned kind)
{
	const struct cw_total *cell = cw_total_cell(device, kind);
	uint64_t peak = __atomic_load_n(&cell->peak, __ATOMIC_RELAXED);
	uint64_t before = __atomic_load_n(&cell->peak_before, __ATOMIC_RELAXED);

	return peak > before ? peak : before;
}

static inline uint64_t cw_total_peak_since_mark(int device, unsigned kind)
{
	return __atomic_load_n(&cw_total_cell(device, kind)->peak, __ATOMIC_RELAXED);
}

/*
 * Sets a mark and returns the highest value of the time since the last one. Every raise is
 * seen on one side of the mark or the other, none is lost. One thread at a time.
 */
uint64_t cw_total_mark(int device, unsigned kind);

static inline uint64_t cw_total_underflows(int device, unsigned kind)
{
	return __atomic_load_n(&cw_total_cell(device, kind)->underflows, __ATOMIC_RELAXED);
}

/* The peak becomes the present value; what happens after the reset counts again. */
void cw_total_reset_peak(int device, unsigned kind);

/* No locks here: a fork needs only this, in the child. */
void cw_totals_postfork_child(void);

#endif
