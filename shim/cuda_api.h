/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA's headers, for types and for checking our definitions against CUDA's prototypes,
 * the deprecated first versions included; nothing of CUDA is linked. Types that an older
 * toolkit lacks are declared here, opaque: they are only passed on.
 */
#ifndef CW_CUDA_API_H
#define CW_CUDA_API_H

/* Every version of a function under its own name, none renamed to the newest. */
#define __CUDA_API_VERSION_INTERNAL

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
#include <cuda.h>
#include <cuda_runtime_api.h>
#pragma GCC diagnostic pop

#if CUDA_VERSION < 12030
typedef struct CUgraphEdgeData_st CUgraphEdgeData;
#endif
#if CUDA_VERSION < 12050
typedef struct CUctxCreateParams_st CUctxCreateParams;
#endif
#if CUDA_VERSION < 12000
typedef int CUdriverProcAddressQueryResult;
#endif

#endif
