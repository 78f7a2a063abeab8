/* SPDX-License-Identifier: Apache-2.0 */
#include "peaks.h"

#include <string.h>
#include <time.h>

#include "common.h"
#include "lock.h"
#include "totals.h"

bool cw_peaks_wanted;

static struct cw_peak peaks[CW_TOTAL_DEVICES + 1][CW_TOTAL_KINDS];
static struct cw_lock lock;
static int64_t start_ns;

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void cw_peaks_start(void)
{
	start_ns = now_ns();
	cw_peaks_wanted = true;
}

static struct cw_peak *peak_of(int device, unsigned int kind)
{
	if (device < -1 || device >= CW_TOTAL_DEVICES || kind >= CW_TOTAL_KINDS) {
		return NULL;
	}
	return &peaks[device + 1][kind];
}

CW_COLD void cw_peak_note(const struct cw_request *request)
{
	struct cw_peak *peak = peak_of(request->device, request->kind);

	if (peak == NULL ||
	    request->after <= __atomic_load_n(&peak->bytes, __ATOMIC_RELAXED)) {
		return;
	}
	cw_lock_acquire(&lock);
	if (request->after > peak->bytes) {
		peak->site = request->stack;
		peak->hook = (uint16_t)request->call;
		peak->after_ns = now_ns() - start_ns;
		__atomic_store_n(&peak->bytes, request->after, __ATOMIC_RELAXED);
	}
	cw_lock_release(&lock);
}

bool cw_peak_read(int device, unsigned int kind, struct cw_peak *ret)
{
	struct cw_peak *peak = peak_of(device, kind);
	bool noted;

	if (peak == NULL) {
		return false;
	}
	cw_lock_acquire(&lock);
	noted = peak->bytes != 0;
	if (noted) {
		*ret = *peak;
	}
	cw_lock_release(&lock);
	return noted;
}

/* Another thread of the parent may have held the lock. */
void cw_peaks_postfork_child(void)
{
	memset(peaks, 0, sizeof(peaks));
	cw_lock_reset(&lock);
}
