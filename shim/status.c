/* SPDX-License-Identifier: Apache-2.0 */
#include "status.h"

#include <stddef.h>
#include <stdint.h>

/* As ranges of the numbers that CUresult has in CUDA 13.0; older headers lack the newest. */
static const struct {
	uint16_t first;
	uint16_t last;
} known[] = {
	{ 0, 8 },     { 34, 34 },   { 36, 36 },   { 46, 46 },   { 100, 102 }, { 200, 202 },
	{ 205, 226 }, { 300, 304 }, { 400, 402 }, { 500, 500 }, { 600, 600 }, { 700, 705 },
	{ 708, 721 }, { 800, 812 }, { 900, 916 }, { 999, 999 },
};

/*
 * Those that cuda.h says leave the process inconsistent, the end of the driver, and the errors of
 * the machine. Not CUDA_ERROR_CONTEXT_IS_DESTROYED (709): it is of the thread's current context,
 * which the memory that the call is about need not be in.
 */
static const uint16_t fatal[] = {
	4, 214, 226, 700, 702, 710, 714, 715, 716, 717, 718, 719, 721, 810, 911,
};

bool cw_status_is_known(int status)
{
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (status >= known[i].first && status <= known[i].last) {
			return true;
		}
	}
	return false;
}

bool cw_status_ends_context(int status)
{
	for (size_t i = 0; i < sizeof(fatal) / sizeof(fatal[0]); i++) {
		if (status == fatal[i]) {
			return true;
		}
	}
	return false;
}

const char *cw_status_name(int status)
{
	switch (status) {
	case 0:
		return "CUDA_SUCCESS";
	case 1:
		return "CUDA_ERROR_INVALID_VALUE";
	case 2:
		return "CUDA_ERROR_OUT_OF_MEMORY";
	case 201:
		return "CUDA_ERROR_INVALID_CONTEXT";
	case 801:
		return "CUDA_ERROR_NOT_SUPPORTED";
	case 999:
		return "CUDA_ERROR_UNKNOWN";
	default:
		return "error";
	}
}
