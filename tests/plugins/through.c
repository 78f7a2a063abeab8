/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two policies in one. "serve" has device and pinned host memory from what stands behind it, as it
 * is asked for, and no block of its own. "see" says what it hears of, as one behind the other.
 */
#include <cuweir/policy.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

struct through {
	const struct cuweir_host *host;
};

static struct through places[4];
static int count;

static void *allocate(void *state, uint64_t size, uint64_t alignment, uint32_t flags)
{
	struct through *self = state;

	return self->host->next->allocate(self->host->next_state, size, alignment, flags);
}

static void *allocate_async(void *state, uint64_t size, uint64_t alignment, uint32_t flags,
			    void *stream)
{
	struct through *self = state;

	return self->host->next->allocate_async(self->host->next_state, size, alignment, flags,
						stream);
}

static bool deallocate(void *state, void *memory)
{
	struct through *self = state;

	return self->host->next->deallocate(self->host->next_state, memory);
}

static bool deallocate_async(void *state, void *memory, void *stream)
{
	struct through *self = state;

	return self->host->next->deallocate_async(self->host->next_state, memory, stream);
}

static void say(void *state, const char *what, const struct cuweir_event *event)
{
	struct through *self = state;
	char line[200];

	snprintf(line, sizeof(line), "%s %llu kind %d by %s, flags %u, %s, status %d", what,
		 (unsigned long long)event->requested, (int)event->kind, event->call,
		 (unsigned int)event->flags, event->context != NULL ? "a context" : "no context",
		 event->status);
	self->host->log(self->host, line);
}

static void on_allocated(void *state, uint64_t size, const struct cuweir_event *event)
{
	say(state, "allocated", event);
}

static void before_free(void *state, const struct cuweir_event *event)
{
	say(state, "before free", event);
}

static void on_deallocated(void *state, uint64_t size, const struct cuweir_event *event)
{
	say(state, "deallocated", event);
}

static const struct cuweir_allocator allocator = {
	.struct_size = sizeof(struct cuweir_allocator),
	.allocate_async = allocate_async,
	.deallocate_async = deallocate_async,
	.allocate = allocate,
	.deallocate = deallocate,
};

static int open_through(const struct cuweir_host *host, const char *arguments, void **ret_state)
{
	static const struct cuweir_policy serving = {
		.struct_size = sizeof(struct cuweir_policy),
		.version = CUWEIR_POLICY_VERSION,
		.name = "through",
		.serves = CUWEIR_KIND_BIT(CUWEIR_KIND_DEVICE) | CUWEIR_KIND_BIT(CUWEIR_KIND_HOST),
		.allocator = &allocator,
	};

	if (count == sizeof(places) / sizeof(places[0])) {
		return host->refuse(host, "too many");
	}
	places[count].host = host;
	*ret_state = &places[count++];
	return strcmp(arguments, "serve") == 0 ? host->set_callbacks(host, &serving) : 0;
}

const struct cuweir_policy cuweir_policy_entry = {
	.struct_size = sizeof(struct cuweir_policy),
	.version = CUWEIR_POLICY_VERSION,
	.flags = CUWEIR_POLICY_DEBUG,
	.name = "through",
	.open = open_through,
	.on_allocated = on_allocated,
	.before_free = before_free,
	.on_deallocated = on_deallocated,
};
