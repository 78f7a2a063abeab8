/* SPDX-License-Identifier: Apache-2.0 */
/* What the runtime door needs of the driver door's streams. Any thread. */
#ifndef CW_DRIVER_STREAM_H
#define CW_DRIVER_STREAM_H

#include <stdbool.h>

#include "cuda_api.h"

/* Before the stream is destroyed: its handle may be handed out again at once. */
void cw_stream_ends(CUstream stream);

/* Whether a capture has ended that cuStreamEndCapture was called for, by what that returned. */
static inline bool cw_capture_has_ended(CUresult result)
{
	/* An invalidated capture ends too; after these two it goes on. */
	return result != CUDA_ERROR_STREAM_CAPTURE_UNMATCHED &&
	       result != CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
}

#endif
