/* SPDX-License-Identifier: Apache-2.0 */
/* virtual WAY SCRIPT by the runtime API, which has pools alone: the words of virtual_pools.h
 * that it can say. */
#include "things.h"

#include <cuda_runtime_api.h>

static cudaMemPool_t *pool(const char *name)
{
	return (cudaMemPool_t *)(void *)thing(name);
}

static struct cudaMemLocation location(const char *type, const char *id)
{
	struct cudaMemLocation location = { .type = cudaMemLocationTypeDevice, .id = atoi(id) };

	if (strcmp(type, "host") == 0) {
		location.type = (enum cudaMemLocationType)2;
	}
	return location;
}

static int do_pool(char **word)
{
	struct cudaMemPoolProps props = { .allocType = cudaMemAllocationTypePinned,
					  .location = location(word[3], word[4]) };

	if (strcmp(word[2], "managed") == 0) {
		props.allocType = (enum cudaMemAllocationType)2;
	}
	return (int)cudaMemPoolCreate(pool(word[1]), &props);
}

static int do_pool_free(char **word)
{
	return (int)cudaMemPoolDestroy(*pool(word[1]));
}

static int do_pool_default(char **word)
{
	return (int)cudaDeviceGetDefaultMemPool(pool(word[1]), atoi(word[2]));
}

static int do_set_pool(char **word)
{
	return (int)cudaDeviceSetMemPool(atoi(word[2]), *pool(word[1]));
}

static int do_from_pool(char **word)
{
	return (int)cudaMallocFromPoolAsync((void **)(void *)thing(word[1]), size(word[2]),
					    *pool(word[3]), handle(word[4]));
}

static int do_async(char **word)
{
	return (int)cudaMallocAsync((void **)(void *)thing(word[1]), size(word[2]),
				    handle(word[3]));
}

static int do_free_async(char **word)
{
	return (int)cudaFreeAsync(handle(word[1]), handle(word[2]));
}

static int do_free(char **word)
{
	return (int)cudaFree(handle(word[1]));
}

static int do_device(char **word)
{
	return (int)cudaSetDevice(atoi(word[1]));
}

static int do_sync(char **word)
{
	(void)word;
	return (int)cudaDeviceSynchronize();
}

static const struct command commands[] = {
	{ "pool", 5, do_pool },		  { "poolfree", 2, do_pool_free },
	{ "pooldefault", 3, do_pool_default }, { "setpool", 3, do_set_pool },
	{ "frompool", 4, do_from_pool },  { "async", 3, do_async },
	{ "freeasync", 2, do_free_async }, { "free", 2, do_free },
	{ "device", 2, do_device },	  { "sync", 1, do_sync },
	{ "truth", 1, do_truth },	  { NULL, 0, NULL },
};

int main(int argc, char **argv)
{
	if (argc < 3) {
		die("usage", "virtual runtime SCRIPT");
	}
	perform_script(commands, argv[2]);
	return 0;
}
