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
#if CUDA_VERSION < 12000
/* One parameter fewer there; ours takes the newer form, and passes on what it is given. */
#define cudaGetDriverEntryPoint cw_cuda11_get_driver_entry_point
enum cudaDriverEntryPointQueryResult { CW_CUDA11_ENTRY_POINT_FOUND };
#endif
#include <cuda_runtime_api.h>
#undef cudaGetDriverEntryPoint
/* CUDA 12 renames it to its second version; a row means the exported name. */
#undef cudaGetDeviceProperties
#pragma GCC diagnostic pop

#if CUDA_VERSION < 12030
typedef struct CUgraphEdgeData_st CUgraphEdgeData;
typedef struct cudaGraphEdgeData_st cudaGraphEdgeData;
#endif
#if CUDA_VERSION < 12010
typedef struct CUmulticastObjectProp_st CUmulticastObjectProp;
#endif
#if CUDA_VERSION < 12040
typedef struct CUgreenCtx_st *CUgreenCtx;
typedef struct CUdevResourceDesc_st *CUdevResourceDesc;
#endif
#if CUDA_VERSION < 12050
typedef struct CUctxCreateParams_st CUctxCreateParams;
#endif
#if CUDA_VERSION < 12020
typedef struct CUgraphNodeParams_st CUgraphNodeParams;
#endif
#if CUDA_VERSION < 12000
typedef int CUdriverProcAddressQueryResult;
typedef struct CUDA_GRAPH_INSTANTIATE_PARAMS_st CUDA_GRAPH_INSTANTIATE_PARAMS;
typedef struct CUgraphExecUpdateResultInfo_st CUgraphExecUpdateResultInfo;
typedef struct CUlib_st *CUlibrary;
typedef int CUlibraryOption;
#endif
#if CUDA_VERSION < 11080
typedef struct CUlaunchConfig_st CUlaunchConfig;
#endif

#endif
