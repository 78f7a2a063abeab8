/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Getting the memory: the chain of policies as a stack around the driver (D-12), with
 * admission on the way in, and failures, retries, thresholds and events on the way out.
 */
#ifndef CW_ATTEMPT_H
#define CW_ATTEMPT_H

#include "pipeline.h"

CUresult cw_attempt(struct cw_request *request);

/*
 * Goes on from the driver's answer, where no policy was to be asked before it. After success
 * the memory is in the books.
 */
CUresult cw_attempt_answered(struct cw_request *request, CUresult result);

/* The admission alone, of all policies, for what is no allocation of its own. */
CUresult cw_admit(struct cw_request *request);

/* What stands behind the policy before `place`: for memory that it takes through `next`. */
CUresult cw_attempt_behind(struct cw_request *request, uint32_t place);

#endif
