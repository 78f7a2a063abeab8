/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libnvcuvid.so.1, NVIDIA's video decoder, of a GPU that has none. GStreamer's plug-in has no CUDA
 * elements at all where neither this library nor the encoder's is to be had with all of its names.
 */
#include <cuda.h>

#define ABSENT(name)                                                                               \
	CUresult name(void);                                                                       \
	CUresult name(void)                                                                        \
	{                                                                                          \
		return CUDA_ERROR_NOT_SUPPORTED;                                                   \
	}

ABSENT(cuvidCtxLockCreate)
ABSENT(cuvidCtxLockDestroy)
ABSENT(cuvidCtxLock)
ABSENT(cuvidCtxUnlock)
ABSENT(cuvidCreateDecoder)
ABSENT(cuvidDestroyDecoder)
ABSENT(cuvidDecodePicture)
ABSENT(cuvidCreateVideoParser)
ABSENT(cuvidParseVideoData)
ABSENT(cuvidDestroyVideoParser)
ABSENT(cuvidMapVideoFrame64)
ABSENT(cuvidUnmapVideoFrame64)
ABSENT(cuvidGetDecoderCaps)
