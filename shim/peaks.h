/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When each total was highest, and which call made it so: kept only where a report was asked
 * for. One lock, taken when a total rises above its highest so far.
 */
#ifndef CW_PEAKS_H
#define CW_PEAKS_H

#include <stdbool.h>
#include <stdint.h>

#include "pipeline.h"

struct cw_peak {
	uint64_t bytes;
	uint64_t site;
	int64_t after_ns; /* since the opening */
	uint16_t hook;
};

extern bool cw_peaks_wanted; /* set at the opening, then only read */

void cw_peaks_start(void);
void cw_peak_note(const struct cw_request *request);

void cw_peaks_postfork_child(void);

/* False where nothing was noted. */
bool cw_peak_read(int device, unsigned int kind, struct cw_peak *ret);

#endif
