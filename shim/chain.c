/* SPDX-License-Identifier: Apache-2.0 */
#include "chain.h"

#include <limits.h>
#include <string.h>
#include <sys/mman.h>

#include "budget.h"
#include "builtin.h"
#include "config.h"
#include "host.h"
#include "message.h"
#include "plugin.h"
#include "program.h"
#include "thread.h"

struct cw_chain cw_chain;

_Static_assert((int)CW_BUDGET_OWNERS == (int)CW_CHAIN_MAX, "a place each");

/* Of a policy that does not open: left out, and where that is fatal, the caller ends. */
static int left_out(const char *setting, const char *reason)
{
	cw_message(CW_ERROR, "CUWEIR_POLICY=\"%s\": %s; the policy is left out", setting, reason);
	return 1;
}

static bool all_zero(const unsigned char *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		if (bytes[i] != 0) {
			return false;
		}
	}
	return true;
}

/* NULL when the table can be used, else why not. */
static const char *check_table(const struct cuweir_policy *entry, char *buffer, size_t size)
{
	const size_t least = offsetof(struct cuweir_policy, open);
	const size_t known = offsetof(struct cuweir_policy, reserved);

	if (entry->struct_size < least) {
		cw_format(buffer, size, "struct_size is %zu; want sizeof(struct cuweir_policy)",
			  entry->struct_size);
		return buffer;
	}
	if (entry->version == 0 || entry->version > CUWEIR_POLICY_VERSION) {
		cw_format(buffer, size,
			  "made for version %u of the policy contract; this cuweir has %u: "
			  "want a newer cuweir, or the policy built with this one's header",
			  entry->version, CUWEIR_POLICY_VERSION);
		return buffer;
	}
	/* From where our own entries end: those that were kept back for later are among them. */
	if (entry->struct_size > known &&
	    !all_zero((const unsigned char *)entry + known, entry->struct_size - known)) {
		cw_format(buffer, size, "it has callbacks that this cuweir does not know; want a "
					"newer cuweir, or the policy built with this one's header");
		return buffer;
	}
	if (entry->name == NULL || entry->name[0] == '\0') {
		return "its table has no name";
	}
	return NULL;
}

static int read_thresholds(struct cw_policy *policy)
{
	const struct cuweir_policy *table = &policy->table;
	const uint64_t *list;
	size_t count;
	int result = 0;

	if (table->get_alloc_thresholds != NULL) {
		count = 0;
		list = table->get_alloc_thresholds(policy->state, &count);
		result = cw_thresholds_init(&policy->lists[0], list, count);
	}
	if (result == 0 && table->get_dealloc_thresholds != NULL) {
		count = 0;
		list = table->get_dealloc_thresholds(policy->state, &count);
		result = cw_thresholds_init(&policy->lists[1], list, count);
	}
	return result;
}

static bool can_serve(const struct cuweir_allocator *allocator)
{
	return (allocator->allocate_async != NULL || allocator->allocate != NULL) &&
	       (allocator->deallocate_async != NULL || allocator->deallocate != NULL);
}

/* Copies the table; NULL, or why it cannot be used. */
static const char *take_table(struct cw_policy *policy, const struct cuweir_policy *entry,
			      char *buffer, size_t size)
{
	const char *reason = check_table(entry, buffer, size);
	struct cuweir_policy table = { 0 };

	if (reason != NULL) {
		return reason;
	}
	memcpy(&table, entry, entry->struct_size < sizeof(table) ? entry->struct_size
								 : sizeof(table));
	if (table.allocator != NULL && !can_serve(table.allocator)) {
		return "its allocator lacks allocate_async or deallocate_async";
	}
	policy->table = table;
	policy->kinds = table.kinds != 0 ? table.kinds : CUWEIR_KIND_BIT(CUWEIR_KIND_DEVICE);
	policy->serves = table.serves != 0 ? table.serves : CUWEIR_KIND_BIT(CUWEIR_KIND_DEVICE);
	if (table.allocator == NULL) {
		policy->serves = 0;
	}
	return NULL;
}

int cw_chain_set_callbacks(struct cw_policy *policy, const struct cuweir_policy *table)
{
	char buffer[256];

	if (!policy->is_opening) {
		return CUWEIR_ERROR_NOT_PERMITTED;
	}
	return table != NULL && take_table(policy, table, buffer, sizeof(buffer)) == NULL
		       ? CUWEIR_SUCCESS : CUWEIR_ERROR_INVALID_VALUE;
}

/* NULL, or why it does not open. */
static const char *start_policy(struct cw_policy *policy, const char *arguments, char *buffer,
				size_t size)
{
	uint32_t outer = cw_thread.in_callback;
	int status = 0;

	policy->alloc = &policy->lists[0];
	policy->dealloc = &policy->lists[1];
	cw_host_init(policy);
	cw_thread.in_callback |= policy->bit;
	if (policy->table.open != NULL) {
		policy->is_opening = true;
		status = policy->table.open(&policy->host, arguments, &policy->state);
		policy->is_opening = false;
	}
	if (status == 0 && read_thresholds(policy) != 0) {
		cw_thread.in_callback = outer;
		return "no memory for its thresholds";
	}
	cw_thread.in_callback = outer;
	if (status == 0) {
		return NULL;
	}
	if (policy->refusal[0] != '\0') {
		return policy->refusal;
	}
	cw_format(buffer, size, "its open returned status %d", status);
	return buffer;
}

/*
 * What one takes through `next` comes from the driver: of two that serve the same kinds the inner
 * one would never be asked.
 */
static void note_served(const struct cw_policy *policy)
{
	if ((cw_chain.served & policy->serves) != 0) {
		cw_message(CW_ERROR, "CUWEIR_POLICY: %s serves no memory, as a policy before it serves the "
				     "same kinds; want one of them",
			   policy->setting);
	}
	cw_chain.served |= policy->serves;
}

static uint32_t wants_of(const struct cuweir_policy *table)
{
	bool shows = (table->on_allocated != NULL || table->on_deallocated != NULL) &&
		     (table->flags & CUWEIR_POLICY_SILENT) == 0;

	return (table->admit != NULL || table->allocator != NULL ? CW_CHAIN_ASKS : 0u) |
	       (table->allocator != NULL ? CW_CHAIN_SERVES : 0u) |
	       (table->before_free != NULL ? CW_CHAIN_BEFORE_FREE : 0u) |
	       (table->memory_info != NULL ? CW_CHAIN_MEMORY_INFO : 0u) |
	       (shows ? CW_CHAIN_SHOWS_EVENTS : 0u);
}

/* NULL when the policy stands at its place, else why it does not. */
static const char *put_policy(const struct cuweir_policy *entry, const char *name,
			      const char *arguments, uint32_t index, char *buffer, size_t size)
{
	struct cw_policy *policy = &cw_chain.policies[index];
	const char *reason;

	memset(policy, 0, sizeof(*policy));
	policy->bit = 1u << index;
	policy->setting = name;
	reason = take_table(policy, entry, buffer, size);
	if (reason == NULL) {
		reason = start_policy(policy, arguments, buffer, size);
	}
	if (reason != NULL) {
		cw_budgets_disown(index);
		return reason;
	}
	note_served(policy);
	__atomic_fetch_or(&cw_chain.wants, wants_of(&policy->table), __ATOMIC_RELAXED);
	if ((policy->table.flags & CUWEIR_POLICY_DEBUG) != 0) {
		cw_debug_always();
	}
	return NULL;
}

/* The next element that is not empty, and where it ends; NULL: none. */
static const char *next_element(const char *at, size_t *ret_length)
{
	if (at == NULL) {
		return NULL;
	}
	at += strspn(at, ";");
	*ret_length = strcspn(at, ";");
	return *ret_length != 0 ? at : NULL;
}

void cw_chain_load(const char *setting, struct cw_plugins *ret_plugins)
{
	const char *element = setting;
	char reason[256];
	char name[PATH_MAX];
	size_t length;

	memset(ret_plugins, 0, sizeof(*ret_plugins));
	for (uint32_t i = 0; i < CW_CHAIN_MAX; i++) {
		element = next_element(element, &length);
		if (element == NULL) {
			return;
		}
		cw_format(name, sizeof(name), "%s", element);
		name[strcspn(name, ":;")] = '\0';
		ret_plugins->entries[i] = cw_plugin_load(name, reason, sizeof(reason));
		element += length;
	}
}

/*
 * One element of the setting, which is ours to cut: name or path, ':', arguments. `entry` where
 * its object is loaded already.
 */
static int add_policy(char *element, const struct cuweir_policy *entry, uint32_t index)
{
	const char *reason = NULL;
	const char *arguments = "";
	char buffer[512];
	char setting[256];
	char *colon = strchr(element, ':');

	cw_format(setting, sizeof(setting), "%s", element);
	if (colon != NULL) {
		*colon = '\0';
		arguments = colon + 1;
	}
	entry = entry == NULL ? cw_plugin_load(element, buffer, sizeof(buffer)) : entry;
	if (entry == NULL) {
		return left_out(setting, buffer);
	}
	reason = put_policy(entry, element, arguments, index, buffer, sizeof(buffer));
	if (reason != NULL) {
		return left_out(setting, reason);
	}
	cw_message(CW_NOTICE, "policy %s is open", setting);
	return 0;
}

/* All of the copied setting, which is cut; the number that failed. */
static int add_policies(char *setting, const struct cw_plugins *plugins, uint32_t *ret_count)
{
	uint32_t count = CW_PLACE_NAMED;
	uint32_t index = 0;
	int failures = 0;
	size_t length;
	char *element = setting;

	while ((element = (char *)next_element(element, &length)) != NULL) {
		const struct cuweir_policy *entry =
			index < CW_CHAIN_MAX ? plugins->entries[index] : NULL;
		char *end = element + length;
		bool is_last = *end == '\0';

		*end = '\0';
		if (count == CW_CHAIN_MAX) {
			failures += left_out(element, "the chain is full at 16 policies");
		} else {
			int failed = add_policy(element, entry, count);

			failures += failed;
			count += failed == 0;
		}
		index++;
		element = is_last ? NULL : end + 1;
	}
	*ret_count = count;
	return failures;
}

int cw_chain_open(const char *setting, const struct cw_plugins *plugins, bool lines)
{
	size_t size = setting != NULL ? strlen(setting) + 1 : 0;
	uint32_t count = CW_PLACE_NAMED;
	int failures = 0;
	char *copy;
	void *memory;

	/* Kept for ever: arguments stay valid for the policies' life, which is the process's. */
	memory = mmap(NULL, CW_CHAIN_MAX * sizeof(struct cw_policy) + size,
		      PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED) {
		return left_out(setting != NULL ? setting : "", "no memory");
	}
	cw_chain.policies = memory;
	cw_program_place(&cw_chain.policies[CW_PLACE_PROGRAM]);
	cw_program_set_outer(CW_PLACE_NAMED);
	copy = (char *)memory + CW_CHAIN_MAX * sizeof(struct cw_policy);
	if (setting != NULL) {
		memcpy(copy, setting, size);
		failures = add_policies(copy, plugins, &count);
	}
	if (lines && !cw_chain_wants(CW_CHAIN_SHOWS_EVENTS)) {
		put_policy(&cw_builtin_lines, cw_builtin_lines.name, "", CW_PLACE_LINES, NULL, 0);
		cw_program_set_outer(CW_PLACE_LINES);
	}
	__atomic_store_n(&cw_chain.count, count, __ATOMIC_RELEASE);
	return failures;
}

void cw_chain_close(bool quietly)
{
	uint32_t count = __atomic_exchange_n(&cw_chain.count, 0, __ATOMIC_ACQ_REL);

	for (uint32_t i = 0; i < count && !quietly; i++) {
		struct cw_policy *policy = &cw_chain.policies[i];

		if (policy->table.close != NULL) {
			cw_thread.in_callback |= policy->bit;
			policy->table.close(policy->state);
			cw_thread.in_callback &= ~policy->bit;
		}
	}
}
