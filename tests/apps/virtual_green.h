/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The words of virtual.c for green contexts:
 *	green NAME N          on device N        greenfree NAME
 *	greencurrent NAME     converts it, and makes that current
 *	greenstream NAME GREEN                   streamfree NAME
 */
#ifndef VIRTUAL_GREEN_H
#define VIRTUAL_GREEN_H

#include "virtual.h"

static int do_green(char **word)
{
	CUdevResource resource;
	CUdevResourceDesc desc;

	CHECK(driver.cuDeviceGetDevResource(atoi(word[2]), &resource, CU_DEV_RESOURCE_TYPE_SM));
	CHECK(driver.cuDevResourceGenerateDesc(&desc, &resource, 1));
	return (int)driver.cuGreenCtxCreate((CUgreenCtx *)(void *)thing(word[1]), desc,
					    atoi(word[2]), CU_GREEN_CTX_DEFAULT_STREAM);
}

static int do_green_free(char **word)
{
	return (int)driver.cuGreenCtxDestroy(handle(word[1]));
}

static int do_green_current(char **word)
{
	CUcontext context;

	CHECK(driver.cuCtxFromGreenCtx(&context, handle(word[1])));
	return (int)driver.cuCtxSetCurrent(context);
}

static int do_green_stream(char **word)
{
	return (int)driver.cuGreenCtxStreamCreate((CUstream *)(void *)thing(word[1]),
						  handle(word[2]), CU_STREAM_NON_BLOCKING, 0);
}

static int do_stream_free(char **word)
{
	return (int)driver.cuStreamDestroy_v2(handle(word[1]));
}

#define GREEN_COMMANDS                                                                       \
	{ "green", 3, do_green }, { "greenfree", 2, do_green_free },                         \
	{ "greencurrent", 2, do_green_current }, { "greenstream", 3, do_green_stream },      \
	{ "streamfree", 2, do_stream_free }

#endif
