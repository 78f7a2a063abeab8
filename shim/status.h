/* SPDX-License-Identifier: Apache-2.0 */
/* What CUDA's status codes mean to us. Pure functions. */
#ifndef CW_STATUS_H
#define CW_STATUS_H

#include <stdbool.h>

/* A CUresult that cuda.h (13.0) names. */
bool cw_status_is_known(int status);

/* After this the context or process is beyond use: what it held counts as gone (D-07). */
bool cw_status_ends_context(int status);

/* "CUDA_ERROR_OUT_OF_MEMORY" and its like for the few that our lines mention, else "error". */
const char *cw_status_name(int status);

#endif
