/* SPDX-License-Identifier: Apache-2.0 */
/*
 * virtual WAY SCRIPT (things.h), by the driver API:
 *	device N                          makes its primary context current
 *	release N                         the primary context of device N
 *	ctx create|destroy
 *	create NAME SIZE [device|host|numa N [fd]]
 *	drop NAME                         releases the handle that NAME stands for
 *	reserve NAME SIZE                 unreserve NAME SIZE
 *	map NAME RANGE OFFSET SIZE        unmap RANGE OFFSET SIZE
 *	retain NAME RANGE OFFSET          the handle for an address
 *	export NAME                       import NAME     the descriptor is in hand between
 *	foreign SIZE                      another process exports so much, until we end
 *	send NAME                         what that one does
 *	multicast NAME SIZE
 *	array NAME | tile ARRAY NAME [ptsz] | untile ARRAY | arrayfree ARRAY
 *	storm THREADS ROUNDS              all of it at once
 * and the words of pools: see virtual_pools.h and virtual_green.h.
 */
#include "virtual.h"

#include "virtual_green.h"
#include "virtual_pools.h"

#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

static int do_device(char **word)
{
	CUcontext context;

	CHECK(driver.cuDevicePrimaryCtxRetain(&context, atoi(word[1])));
	return (int)driver.cuCtxSetCurrent(context);
}

static int do_release(char **word)
{
	return (int)driver.cuDevicePrimaryCtxRelease_v2(atoi(word[1]));
}

static int do_ctx(char **word)
{
	CUcontext context;

	if (strcmp(word[1], "create") == 0) {
		return (int)driver.cuCtxCreate_v2(&context, 0, 0);
	}
	CHECK(driver.cuCtxGetCurrent(&context));
	return (int)driver.cuCtxDestroy_v2(context);
}

static int do_create(char **word)
{
	CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
				     .location = location(word[3], word[4]) };

	if (strcmp(word[5], "fd") == 0) {
		prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	}
	return (int)driver.cuMemCreate(thing(word[1]), size(word[2]), &prop, 0);
}

static int do_drop(char **word)
{
	return (int)driver.cuMemRelease(*thing(word[1]));
}

static int do_reserve(char **word)
{
	return (int)driver.cuMemAddressReserve(thing(word[1]), size(word[2]), 0, 0, 0);
}

static int do_unreserve(char **word)
{
	return (int)driver.cuMemAddressFree(*thing(word[1]), size(word[2]));
}

static int do_map(char **word)
{
	return (int)driver.cuMemMap(*thing(word[2]) + size(word[3]), size(word[4]), 0,
				    *thing(word[1]), 0);
}

static int do_unmap(char **word)
{
	return (int)driver.cuMemUnmap(*thing(word[1]) + size(word[2]), size(word[3]));
}

static int do_retain(char **word)
{
	return (int)driver.cuMemRetainAllocationHandle(
		thing(word[1]), (void *)(*thing(word[2]) + size(word[3])));
}

static int in_hand = -1;

static int do_export(char **word)
{
	return (int)driver.cuMemExportToShareableHandle(
		&in_hand, *thing(word[1]), CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
}

static int do_import(char **word)
{
	return (int)driver.cuMemImportFromShareableHandle(
		thing(word[1]), (void *)(size_t)in_hand, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
}

/* ---- another process --------------------------------------------------------------------- */

enum { SOCKET = 9 };

static const char *program;
static const char *how_to_start;

union descriptor_message {
	struct cmsghdr header;
	char bytes[CMSG_SPACE(sizeof(int))];
};

static struct msghdr message_of(struct iovec *io, union descriptor_message *control)
{
	return (struct msghdr){ .msg_iov = io, .msg_iovlen = 1, .msg_control = control->bytes,
				.msg_controllen = sizeof(control->bytes) };
}

static int do_send(char **word)
{
	union descriptor_message control = { .bytes = { 0 } };
	char byte = 0;
	struct iovec io = { &byte, 1 };
	struct msghdr message = message_of(&io, &control);
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	CHECK(do_export(word));
	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(header), &in_hand, sizeof(int));
	REQUIRE(sendmsg(SOCKET, &message, 0) == 1);
	/* Until the other end is closed. */
	while (read(SOCKET, &byte, 1) > 0) {
	}
	return 0;
}

/* Without anything preloaded: its books are not ours. */
static int do_foreign(char **word)
{
	union descriptor_message control;
	char script[64], byte;
	struct iovec io = { &byte, 1 };
	struct msghdr message = message_of(&io, &control);
	int ends[2];

	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
	snprintf(script, sizeof(script), "create a %s device 0 fd; send a", word[1]);
	if (fork() == 0) {
		unsetenv("LD_PRELOAD");
		unsetenv("CUWEIR_POLICY");
		dup2(ends[1], SOCKET);
		close(ends[0]);
		close(ends[1]);
		execl(program, program, how_to_start, script, (char *)NULL);
		_exit(127);
	}
	close(ends[1]);
	REQUIRE(recvmsg(ends[0], &message, MSG_CMSG_CLOEXEC) == 1);
	memcpy(&in_hand, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(int));
	return 0;
}

static int do_multicast(char **word)
{
	CUmulticastObjectProp prop = { .numDevices = 1, .size = size(word[2]) };

	return (int)driver.cuMulticastCreate(thing(word[1]), &prop);
}

/* ---- arrays whose memory comes later ---------------------------------------------------- */

static int do_array(char **word)
{
	CUDA_ARRAY3D_DESCRIPTOR shape = { .Width = 64, .Height = 64, .NumChannels = 1,
					  .Format = CU_AD_FORMAT_UNSIGNED_INT8,
					  .Flags = CUDA_ARRAY3D_DEFERRED_MAPPING };

	return (int)driver.cuArray3DCreate_v2((CUarray *)(void *)thing(word[1]), &shape);
}

static int map_array(char **word, CUmemOperationType operation)
{
	CUarrayMapInfo info = { .resourceType = CU_RESOURCE_TYPE_ARRAY,
				.memOperationType = operation,
				.memHandleType = CU_MEM_HANDLE_TYPE_GENERIC,
				.deviceBitMask = 1 };

	info.resource.array = handle(word[1]);
	if (operation == CU_MEM_OPERATION_TYPE_MAP) {
		info.memHandle.memHandle = *thing(word[2]);
		if (strcmp(word[3], "ptsz") == 0) {
			return (int)driver.cuMemMapArrayAsync_ptsz(&info, 1, NULL);
		}
	}
	return (int)driver.cuMemMapArrayAsync(&info, 1, NULL);
}

static int do_tile(char **word)
{
	return map_array(word, CU_MEM_OPERATION_TYPE_MAP);
}

static int do_untile(char **word)
{
	return map_array(word, CU_MEM_OPERATION_TYPE_UNMAP);
}

static int do_array_free(char **word)
{
	return (int)driver.cuArrayDestroy(handle(word[1]));
}

/* ---- many threads ----------------------------------------------------------------------- */

enum { PIECE = 2 << 20, PIECES = 4 };

static int rounds;

/* References and mappings go in an order that differs from round to round and thread to thread. */
static void *storm(void *argument)
{
	CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
				     .location = location("device", "0") };
	unsigned int order = (unsigned int)(size_t)argument;
	CUmemGenericAllocationHandle handles[PIECES];
	CUdeviceptr range;

	CHECK(driver.cuMemAddressReserve(&range, PIECES * PIECE, 0, 0, 0));
	for (int round = 0; round < rounds; round++) {
		bool retained = (order += 7) % 3 == 0;
		CUmemGenericAllocationHandle again;

		for (int i = 0; i < PIECES; i++) {
			CHECK(driver.cuMemCreate(&handles[i], PIECE, &prop, 0));
			CHECK(driver.cuMemMap(range + (size_t)i * PIECE, PIECE, 0, handles[i], 0));
			if (order % 2 == 0) {
				CHECK(driver.cuMemRelease(handles[i]));
			}
		}
		if (retained) {
			CHECK(driver.cuMemRetainAllocationHandle(&again, (void *)(range + 4096)));
		}
		CHECK(driver.cuMemUnmap(range, PIECES * PIECE));
		for (int i = 0; order % 2 != 0 && i < PIECES; i++) {
			CHECK(driver.cuMemRelease(handles[i]));
		}
		if (retained) {
			CHECK(driver.cuMemRelease(again));
		}
	}
	CHECK(driver.cuMemAddressFree(range, PIECES * PIECE));
	return NULL;
}

static int do_storm(char **word)
{
	pthread_t threads[16];
	size_t count = size(word[1]);

	rounds = atoi(word[2]);
	for (size_t i = 0; i < count; i++) {
		CHECK(pthread_create(&threads[i], NULL, storm, (void *)i));
	}
	for (size_t i = 0; i < count; i++) {
		CHECK(pthread_join(threads[i], NULL));
	}
	return 0;
}

static const struct command commands[] = {
	{ "device", 2, do_device },	  { "release", 2, do_release },
	{ "ctx", 2, do_ctx },		  { "create", 3, do_create },
	{ "drop", 2, do_drop },		  { "reserve", 3, do_reserve },
	{ "unreserve", 3, do_unreserve }, { "map", 5, do_map },
	{ "unmap", 4, do_unmap },	  { "retain", 4, do_retain },
	{ "export", 2, do_export },	  { "import", 2, do_import },
	{ "foreign", 2, do_foreign },	  { "send", 2, do_send },
	{ "multicast", 3, do_multicast }, { "array", 2, do_array },
	{ "tile", 3, do_tile },		  { "untile", 2, do_untile },
	{ "arrayfree", 2, do_array_free }, { "storm", 3, do_storm },
	{ "truth", 1, do_truth },	  POOL_COMMANDS,
	GREEN_COMMANDS,			  { NULL, 0, NULL },
};

int main(int argc, char **argv)
{
	char *none[] = { (char *)"device", (char *)"0", NULL };

	if (argc < 3) {
		die("usage", "virtual linked|dlsym|gpa|gpa1 SCRIPT");
	}
	program = argv[0];
	how_to_start = argv[1];
	find_functions(argv[1]);
	CHECK(driver.cuInit(0));
	CHECK(do_device(none));
	perform_script(commands, argv[2]);
	return 0;
}
