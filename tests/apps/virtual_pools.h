/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The words of virtual.c for stream-ordered pools:
 *	pool NAME pinned|managed device|host|numa|none N [fd]      poolfree NAME
 *	pooldefault NAME N | poolof NAME N   of device N           trim NAME
 *	pooldefault13 NAME pinned|managed LOCATION N
 *	setpool NAME N                        setpool13 NAME pinned|managed LOCATION N
 *	frompool NAME SIZE POOL [STREAM]      frompoolpt NAME SIZE POOL     the _ptsz variant
 *	async NAME SIZE [STREAM]              freeasync NAME [STREAM]
 *	alloc NAME SIZE                       free NAME       sync
 *	stream NAME                           capture STREAM  endcapture STREAM
 *	poolexport NAME | poolimport NAME | ptrexport NAME | ptrimport NAME POOL
 */
#ifndef VIRTUAL_POOLS_H
#define VIRTUAL_POOLS_H

#include "virtual.h"

static CUmemAllocationType type_of(const char *word)
{
	return strcmp(word, "managed") == 0 ? (CUmemAllocationType)2
					    : CU_MEM_ALLOCATION_TYPE_PINNED;
}

static CUmemoryPool *pool(const char *name)
{
	return (CUmemoryPool *)(void *)thing(name);
}

static int do_pool(char **word)
{
	CUmemPoolProps props = { .allocType = type_of(word[2]),
				 .location = location(word[3], word[4]) };

	if (strcmp(word[5], "fd") == 0) {
		props.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	}
	return (int)driver.cuMemPoolCreate(pool(word[1]), &props);
}

static int do_pool_free(char **word)
{
	return (int)driver.cuMemPoolDestroy(*pool(word[1]));
}

static int do_trim(char **word)
{
	return (int)driver.cuMemPoolTrimTo(*pool(word[1]), 0);
}

static int do_pool_default(char **word)
{
	return (int)driver.cuDeviceGetDefaultMemPool(pool(word[1]), atoi(word[2]));
}

static int do_pool_of(char **word)
{
	return (int)driver.cuDeviceGetMemPool(pool(word[1]), atoi(word[2]));
}

static int do_pool_default_13(char **word)
{
	CUmemLocation where = location(word[3], word[4]);

	return (int)driver.cuMemGetDefaultMemPool(pool(word[1]), &where, type_of(word[2]));
}

static int do_set_pool(char **word)
{
	return (int)driver.cuDeviceSetMemPool(atoi(word[2]), *pool(word[1]));
}

static int do_set_pool_13(char **word)
{
	CUmemLocation where = location(word[3], word[4]);

	return (int)driver.cuMemSetMemPool(&where, type_of(word[2]), *pool(word[1]));
}

static int do_from_pool(char **word)
{
	return (int)driver.cuMemAllocFromPoolAsync(thing(word[1]), size(word[2]), *pool(word[3]),
						   handle(word[4]));
}

static int do_from_pool_ptsz(char **word)
{
	return (int)driver.cuMemAllocFromPoolAsync_ptsz(thing(word[1]), size(word[2]),
							*pool(word[3]), NULL);
}

static int do_async(char **word)
{
	return (int)driver.cuMemAllocAsync(thing(word[1]), size(word[2]), handle(word[3]));
}

static int do_free_async(char **word)
{
	return (int)driver.cuMemFreeAsync(*thing(word[1]), handle(word[2]));
}

static int do_alloc(char **word)
{
	return (int)driver.cuMemAlloc_v2(thing(word[1]), size(word[2]));
}

static int do_free(char **word)
{
	return (int)driver.cuMemFree_v2(*thing(word[1]));
}

static int do_sync(char **word)
{
	(void)word;
	return (int)driver.cuCtxSynchronize();
}

static int do_stream(char **word)
{
	return (int)driver.cuStreamCreate((CUstream *)(void *)thing(word[1]),
					  CU_STREAM_NON_BLOCKING);
}

static int do_capture(char **word)
{
	return (int)driver.cuStreamBeginCapture_v2(handle(word[1]),
						   CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
}

static int do_end_capture(char **word)
{
	CUgraph graph;

	return (int)driver.cuStreamEndCapture(handle(word[1]), &graph);
}

static int pool_in_hand = -1;
static CUmemPoolPtrExportData pointer_in_hand;

static int do_pool_export(char **word)
{
	return (int)driver.cuMemPoolExportToShareableHandle(
		&pool_in_hand, *pool(word[1]), CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
}

static int do_pool_import(char **word)
{
	return (int)driver.cuMemPoolImportFromShareableHandle(
		pool(word[1]), (void *)(size_t)pool_in_hand,
		CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
}

static int do_pointer_export(char **word)
{
	return (int)driver.cuMemPoolExportPointer(&pointer_in_hand, *thing(word[1]));
}

static int do_pointer_import(char **word)
{
	return (int)driver.cuMemPoolImportPointer(thing(word[1]), *pool(word[2]),
						  &pointer_in_hand);
}

#define POOL_COMMANDS                                                                        \
	{ "pool", 5, do_pool }, { "poolfree", 2, do_pool_free }, { "trim", 2, do_trim },     \
	{ "pooldefault", 3, do_pool_default }, { "poolof", 3, do_pool_of },                  \
	{ "pooldefault13", 5, do_pool_default_13 }, { "setpool", 3, do_set_pool },           \
	{ "setpool13", 5, do_set_pool_13 }, { "frompool", 4, do_from_pool },                 \
	{ "frompoolpt", 4, do_from_pool_ptsz }, { "async", 3, do_async },                    \
	{ "freeasync", 2, do_free_async }, { "alloc", 3, do_alloc }, { "free", 2, do_free }, \
	{ "sync", 1, do_sync }, { "stream", 2, do_stream }, { "capture", 2, do_capture },    \
	{ "endcapture", 2, do_end_capture }, { "poolexport", 2, do_pool_export },            \
	{ "poolimport", 2, do_pool_import }, { "ptrexport", 2, do_pointer_export },          \
	{ "ptrimport", 3, do_pointer_import }

#endif
