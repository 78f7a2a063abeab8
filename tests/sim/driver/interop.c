/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interoperability with OpenGL, EGL and VDPAU on a machine that has none of them: no thread has a
 * GL context, and no image, stream, sync or surface of theirs is a valid one. Programs that take all
 * of their names from the driver find them, and whoever uses one is told so by a code that the
 * function's documentation lists. Their headers want those of GL, EGL and VDPAU, which need not be
 * there, so the prototypes are written here: GLuint and GLenum are unsigned int, EGL's handles are
 * pointers, VDPAU's are 32 bits.
 */
#include "internal.h"

/* CUeglFrame, which is passed by value. */
struct frame {
	void *planes[3];
	unsigned int fields[9];
};

/* What a call comes to that has a CUDA context, and nothing else that it needs. */
static CUresult without(CUresult answer)
{
	struct sim_ctx *c;
	CUresult r = sim_ctx_current(&c);

	return r == CUDA_SUCCESS ? answer : r;
}

/* No CUDA context is needed: programs ask before they make one. */
static CUresult gl_devices(const unsigned int *n)
{
	return n != NULL ? CUDA_ERROR_INVALID_GRAPHICS_CONTEXT : CUDA_ERROR_INVALID_VALUE;
}

static CUresult on_device(CUdevice device, CUresult answer)
{
	struct sim_device *d;
	CUresult r = sim_device_get(device, &d);

	return r == CUDA_SUCCESS ? answer : r;
}

static CUresult egl_frame(const struct frame *frame)
{
	return without(frame != NULL ? CUDA_ERROR_NOT_MAPPED : CUDA_ERROR_INVALID_VALUE);
}

#define NO_GL without(CUDA_ERROR_OPERATING_SYSTEM)
/* The deprecated functions know no better code for a thread without a GL context; GPU?. */
#define NO_GL_CONTEXT without(CUDA_ERROR_INVALID_CONTEXT)
#define NO_GL_FOR(device) on_device(device, CUDA_ERROR_INVALID_CONTEXT)
#define NO_VDPAU_FOR(device) on_device(device, CUDA_ERROR_INVALID_VALUE)
#define UNKNOWN_HANDLE without(CUDA_ERROR_INVALID_HANDLE)

SIM_API(cuGLGetDevices_v2,
	(unsigned int *n, CUdevice *devices, unsigned int room, unsigned int list), (room, list),
	(*n), gl_devices(n))
SIM_API(cuGLGetDevices,
	(unsigned int *n, CUdevice *devices, unsigned int room, unsigned int list), (room, list),
	(*n), gl_devices(n))
SIM_API(cuGraphicsGLRegisterBuffer,
	(CUgraphicsResource *res, unsigned int buffer, unsigned int flags), (buffer, flags),
	(*res), NO_GL)
SIM_API(cuGraphicsGLRegisterImage,
	(CUgraphicsResource *res, unsigned int image, unsigned int target, unsigned int flags),
	(image, target, flags), (*res), NO_GL)

SIM_API(cuGLInit, (void), (0), (0), without(CUDA_ERROR_UNKNOWN))
SIM_API(cuGLCtxCreate_v2, (CUcontext *ctx, unsigned int flags, CUdevice device), (flags, device),
	(*ctx), NO_GL_FOR(device))
SIM_API(cuGLCtxCreate, (CUcontext *ctx, unsigned int flags, CUdevice device), (flags, device),
	(*ctx), NO_GL_FOR(device))
SIM_API(cuGLRegisterBufferObject, (unsigned int buffer), (buffer), (0), NO_GL_CONTEXT)
SIM_API(cuGLUnregisterBufferObject, (unsigned int buffer), (buffer), (0), NO_GL_CONTEXT)
SIM_API(cuGLSetBufferObjectMapFlags, (unsigned int buffer, unsigned int flags), (buffer, flags),
	(0), UNKNOWN_HANDLE)
SIM_API_PTDS(cuGLMapBufferObject_v2, (CUdeviceptr *p, size_t *size, unsigned int buffer), (buffer),
	     (*p, *size), NO_GL_CONTEXT)
SIM_API(cuGLMapBufferObject, (CUdeviceptr_v1 *p, unsigned int *size, unsigned int buffer),
	(buffer), (*p, *size), NO_GL_CONTEXT)
SIM_API_PTSZ(cuGLMapBufferObjectAsync_v2,
	     (CUdeviceptr *p, size_t *size, unsigned int buffer, CUstream s), (buffer, s),
	     (*p, *size), NO_GL_CONTEXT)
SIM_API(cuGLMapBufferObjectAsync,
	(CUdeviceptr_v1 *p, unsigned int *size, unsigned int buffer, CUstream s), (buffer, s),
	(*p, *size), NO_GL_CONTEXT)
SIM_API(cuGLUnmapBufferObject, (unsigned int buffer), (buffer), (0), NO_GL_CONTEXT)
SIM_API(cuGLUnmapBufferObjectAsync, (unsigned int buffer, CUstream s), (buffer, s), (0),
	NO_GL_CONTEXT)

SIM_API(cuGraphicsEGLRegisterImage, (CUgraphicsResource *res, void *image, unsigned int flags),
	(image, flags), (*res), UNKNOWN_HANDLE)
SIM_API(cuGraphicsResourceGetMappedEglFrame,
	(struct frame *frame, CUgraphicsResource res, unsigned int index, unsigned int level),
	(res, index, level), (0), egl_frame(frame))
SIM_API(cuEventCreateFromEGLSync, (CUevent *event, void *sync, unsigned int flags), (sync, flags),
	(*event), without(CUDA_ERROR_INVALID_VALUE))
SIM_API(cuEGLStreamConsumerConnect, (void **conn, void *stream), (stream), (*conn),
	UNKNOWN_HANDLE)
SIM_API(cuEGLStreamConsumerConnectWithFlags, (void **conn, void *stream, unsigned int flags),
	(stream, flags), (*conn), UNKNOWN_HANDLE)
SIM_API(cuEGLStreamConsumerDisconnect, (void **conn), (conn), (0), UNKNOWN_HANDLE)
SIM_API(cuEGLStreamConsumerAcquireFrame,
	(void **conn, CUgraphicsResource *res, CUstream *s, unsigned int timeout), (conn, timeout),
	(*res), UNKNOWN_HANDLE)
SIM_API(cuEGLStreamConsumerReleaseFrame, (void **conn, CUgraphicsResource res, CUstream *s),
	(conn, res), (0), UNKNOWN_HANDLE)
SIM_API(cuEGLStreamProducerConnect, (void **conn, void *stream, int width, int height),
	(stream, width, height), (*conn), UNKNOWN_HANDLE)
SIM_API(cuEGLStreamProducerDisconnect, (void **conn), (conn), (0), UNKNOWN_HANDLE)
SIM_API(cuEGLStreamProducerPresentFrame, (void **conn, struct frame frame, CUstream *s), (conn),
	(0), UNKNOWN_HANDLE)
SIM_API(cuEGLStreamProducerReturnFrame, (void **conn, struct frame *frame, CUstream *s), (conn),
	(0), UNKNOWN_HANDLE)

SIM_API(cuVDPAUGetDevice, (CUdevice *device, uint32_t vdp, void *get_proc), (vdp), (*device),
	CUDA_ERROR_INVALID_VALUE)
SIM_API(cuVDPAUCtxCreate_v2,
	(CUcontext *ctx, unsigned int flags, CUdevice device, uint32_t vdp, void *get_proc),
	(flags, device, vdp), (*ctx), NO_VDPAU_FOR(device))
SIM_API(cuVDPAUCtxCreate,
	(CUcontext *ctx, unsigned int flags, CUdevice device, uint32_t vdp, void *get_proc),
	(flags, device, vdp), (*ctx), NO_VDPAU_FOR(device))
SIM_API(cuGraphicsVDPAURegisterVideoSurface,
	(CUgraphicsResource *res, uint32_t surface, unsigned int flags), (surface, flags), (*res),
	UNKNOWN_HANDLE)
SIM_API(cuGraphicsVDPAURegisterOutputSurface,
	(CUgraphicsResource *res, uint32_t surface, unsigned int flags), (surface, flags), (*res),
	UNKNOWN_HANDLE)
