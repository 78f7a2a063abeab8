/* SPDX-License-Identifier: Apache-2.0 */
/* Closes libcuda and opens it anew, several times, and looks its functions up each time. */
#include "apps.h"

#include <cuda.h>

#undef cuMemAlloc
#undef cuMemFree

int main(void)
{
	for (int turn = 0; turn < 4; turn++) {
		void *libcuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
		CUresult (*init)(unsigned int) = NULL;
		CUresult (*retain)(CUcontext *, CUdevice) = NULL;
		CUresult (*set)(CUcontext) = NULL;
		CUresult (*alloc)(CUdeviceptr *, size_t) = NULL;
		CUresult (*mem_free)(CUdeviceptr) = NULL;
		CUresult (*release)(CUdevice) = NULL;
		unsigned long long (*used)(int, int) = NULL;
		CUcontext context;
		CUdeviceptr p, q;

		REQUIRE(libcuda != NULL);
		*(void **)&init = dlsym(libcuda, "cuInit");
		*(void **)&retain = dlsym(libcuda, "cuDevicePrimaryCtxRetain");
		*(void **)&set = dlsym(libcuda, "cuCtxSetCurrent");
		*(void **)&alloc = dlsym(libcuda, "cuMemAlloc_v2");
		*(void **)&mem_free = dlsym(libcuda, "cuMemFree_v2");
		*(void **)&release = dlsym(libcuda, "cuDevicePrimaryCtxRelease_v2");
		*(void **)&used = dlsym(libcuda, "cuweir_sim_used");
		CHECK(init(0));
		CHECK(retain(&context, 0));
		CHECK(set(context));
		CHECK(alloc(&p, 1000));
		CHECK(alloc(&q, 2000));
		CHECK(mem_free(p));
		printf("turn %d: %llu\n", turn, used(0, 0));
		CHECK(release(0)); /* and q with it */
		CHECK(set(NULL));
		/* The last one stays, for those who want to know what it has. */
		if (turn < 3) {
			CHECK(dlclose(libcuda));
		}
	}
	return 0;
}
