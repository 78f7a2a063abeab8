/* SPDX-License-Identifier: Apache-2.0 */
/* The longer way into a call: before cuInit, and wherever a setting watches calls. */
#include <string.h>

#include "internal.h"
#include "private.h"

_Atomic uint64_t sim_calls[SIM_FN_COUNT];

/* Documented without CUDA_ERROR_NOT_INITIALIZED, or known to be asked before cuInit. */
static bool needs_no_init(enum sim_fn fn)
{
	switch (fn) {
	case SIM_FN_cuInit:
	case SIM_FN_cuDriverGetVersion:
	case SIM_FN_cuGetErrorName:
	case SIM_FN_cuGetErrorString:
	case SIM_FN_cuGetProcAddress:
	case SIM_FN_cuGetProcAddress_v2:
	case SIM_FN_cuGetExportTable:
	case SIM_FN_cuThreadExchangeStreamCaptureMode:
		return true;
	default:
		return false;
	}
}

/* P-27's four (with their variants), and what touches no device. */
static bool strict_allows(enum sim_fn fn)
{
	static const char *const bases[] = {
		"cuMemAllocAsync",  "cuMemAllocFromPoolAsync", "cuMemFreeAsync",
		"cuStreamEndCapture", "cuStreamIsCapturing",
	};

	for (size_t i = 0; i < sizeof(bases) / sizeof(bases[0]); i++) {
		if (strcmp(sim_fns[fn].base, bases[i]) == 0) {
			return true;
		}
	}
	return needs_no_init(fn);
}

CUresult sim_enter_slow(enum sim_fn fn)
{
	CUresult r;

	sim_settings_ready();
	for (volatile unsigned long i = 0; i < sim_set.latency; i++) {
	}
	if ((!sim_settings_is_inited() && !needs_no_init(fn)) ||
	    (sim_settings_is_forked() && fn == SIM_FN_cuInit)) {
		return CUDA_ERROR_NOT_INITIALIZED;
	}
	r = sim_rules_ask(fn);
	if (r == CUDA_SUCCESS && sim_set.strict && !strict_allows(fn)) {
		r = sim_capture_strict();
	}
	return r;
}
