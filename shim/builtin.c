/* SPDX-License-Identifier: Apache-2.0 */
#include "builtin.h"

#include <unistd.h>

#include "message.h"
#include "report.h"
#include "status.h"

static const char *kind_name(uint32_t kind)
{
	return kind != CUWEIR_KIND_NONE && kind < CUWEIR_KIND_COUNT ? cw_kind_name(kind) : "memory";
}

static int open_lines(const struct cuweir_host *host, const char *arguments, void **ret_state)
{
	(void)arguments;
	*ret_state = (void *)(uintptr_t)host;
	return CUWEIR_SUCCESS;
}

static void write_line(void *state, const char *verb, const struct cuweir_event *event)
{
	const struct cuweir_host *host = state;
	char size[16];
	char total[16];
	char line[256];
	size_t length;

	length = cw_format(line, sizeof(line), "cuweir[%d]: %s %s (%llu B) %s by %s, device %d",
			   (int)getpid(), verb, cw_human_size(size, event->requested),
			   (unsigned long long)event->requested, kind_name(event->kind), event->call,
			   event->device);
	if (event->charged != event->requested) {
		length += cw_format(line + length, sizeof(line) - length, ", charged %llu B",
				    (unsigned long long)event->charged);
	}
	if (event->status == CUWEIR_SUCCESS) {
		cw_format(line + length, sizeof(line) - length, ", %p, total %s (%llu B)",
			  event->pointer, cw_human_size(total, event->total_after),
			  (unsigned long long)event->total_after);
	} else {
		cw_format(line + length, sizeof(line) - length, ": %s (%d)",
			  cw_status_name(event->status), event->status);
	}
	host->log(host, line);
}

static void on_allocated(void *state, uint64_t size, const struct cuweir_event *event)
{
	(void)size;
	write_line(state, "allocated", event);
}

static void on_deallocated(void *state, uint64_t size, const struct cuweir_event *event)
{
	(void)size;
	write_line(state, "freed", event);
}

static void on_alloc_failed(void *state, const struct cuweir_event *event)
{
	write_line(state, "failed", event);
}

const struct cuweir_policy cw_builtin_lines = {
	.struct_size = sizeof(struct cuweir_policy),
	.version = CUWEIR_POLICY_VERSION,
	.flags = CUWEIR_POLICY_CAPTURE_SAFE,
	.name = "lines",
	.summary = "a line for each allocation and free",
	.open = open_lines,
	.on_allocated = on_allocated,
	.on_deallocated = on_deallocated,
	.on_alloc_failed = on_alloc_failed,
};
