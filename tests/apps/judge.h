/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of judge share; see judge.c. */
#ifndef JUDGE_H
#define JUDGE_H

#include "apps.h"

#include <cuda.h>
#include <cuda_runtime_api.h>

/* Newer headers lack it, and give its name without suffix to a later version. */
CUresult cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device);

/* A program's own: the primary context of a device, made current by the driver. */
void judge_use(int device);

/* judge_where.c: memory in whatever context is current, by threads that move about. */
void judge_contexts(unsigned int seed);
void judge_crowd(unsigned int seed);

/* judge_fuzz.c: everything that takes memory. */
void judge_fuzz(unsigned int seed);

/* judge_odd.c: what programs should not do, by status; and every free of every allocation. */
void judge_odd(void);
void judge_wants(void);
void judge_starved(void);
void judge_matrix(void);
void judge_captures(void);

#endif
