/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The out-of-memory message: when an allocation has finally failed for want of memory, one
 * compact block that says what there is and who has it, in one write to stderr. For runs that
 * asked to be told (cuweir run, CUWEIR_REPORT, CUWEIR_VERBOSE=2); at most one in ten seconds,
 * three in a process.
 */
#ifndef CW_OOM_H
#define CW_OOM_H

#include "pipeline.h"

void cw_oom_tell(const struct cw_request *request);

#endif
