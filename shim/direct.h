/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocations that do not come through a door: of a reservation, and of a program that uses
 * cuweir.h. The whole pipeline, as for a call of the program's own. Any thread.
 */
#ifndef CW_DIRECT_H
#define CW_DIRECT_H

#include "budget.h"
#include "cuda_api.h"

struct cw_direct {
	uint64_t size;
	uint16_t alignment;       /* for a policy that serves; what CUDA gives does for all */
	bool ordered;             /* in the order of `stream`; else valid in every stream */
	bool resizable;
	CUstream stream;
	const void *site;
	/* Bytes claimed ahead, kept through all retries; NULL and 0 where there are none. */
	struct cw_budget *budget;
	uint64_t claimed;

	void *memory;             /* the result */
	bool claim_used;          /* the claim is now the memory's; else it is the caller's still */
};

CUresult cw_direct_allocate(struct cw_direct *direct);

/*
 * CUDA_ERROR_INVALID_VALUE, and no CUDA call, for memory that is not in the books or did not
 * come from cw_direct_allocate.
 */
CUresult cw_direct_free(void *memory, bool ordered, CUstream stream, const void *site);

/* NULL where it was not done, and the old memory is as it was. */
void *cw_direct_reallocate(void *memory, uint64_t alignment, uint64_t new_size,
			   const void *site);

/*
 * The library was loaded privately: no door hears anything, so that captures have to be asked
 * for.
 */
void cw_direct_set_alone(void);
bool cw_direct_alone(void);

#endif
