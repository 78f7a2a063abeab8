/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the simulated driver tells a test, beside the CUDA API: the truth to compare books with.
 * These functions are exported by the simulated libcuda.so.1. They count as no driver call, appear
 * in no trace, need no cuInit, and may be called from any thread. Take them by dlsym, or link.
 */
#ifndef CUWEIR_TESTS_SIM_H
#define CUWEIR_TESTS_SIM_H

#ifdef __cplusplus
extern "C" {
#endif

enum cuweir_sim_kind {
	CUWEIR_SIM_DEVICE = 0, /* D: linear, pitched, stream-ordered, launched graphs */
	CUWEIR_SIM_MANAGED = 1, /* M */
	CUWEIR_SIM_HOST = 2, /* H: pinned host memory that the driver gave */
	CUWEIR_SIM_IMPORTED = 3, /* I: IPC, pool pointers, external memory */
	CUWEIR_SIM_VA = 4, /* V: reserved address ranges */
	CUWEIR_SIM_POOL = 5, /* P: bytes that the device's pools hold, used or not */
	CUWEIR_SIM_REGISTERED = 6, /* the program's own memory, given to cuMemHostRegister */
	CUWEIR_SIM_GRAPH = 7, /* bytes that graph memory holds, used or not */
	CUWEIR_SIM_KINDS = 8
};

/*
 * Bytes by request (see README.md), and the number of live allocations. 0 for an unknown pair.
 * Device -1 has what is no device's: host memory of cuMemCreate and of host pools, what those
 * pools hold, and reserved address ranges; device 0's figures hold those too.
 */
unsigned long long cuweir_sim_used(int device, int kind);
unsigned long long cuweir_sim_live(int device, int kind);

/* Free bytes of a device, as cuMemGetInfo would say now. */
unsigned long long cuweir_sim_free(int device);

/* Calls of one exported symbol, or of all for NULL. */
unsigned long long cuweir_sim_calls(const char *symbol);

/*
 * A way into the driver that passes neither dlsym nor cuGetProcAddress of the program: the same
 * answer as cuGetProcAddress_v2 gives, from a table. It is there for the "foreign" runtime.
 */
void *cuweir_sim_private_entry(const char *base, int version, unsigned long long flags);

#ifdef __cplusplus
}
#endif
#endif
