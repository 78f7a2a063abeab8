/* SPDX-License-Identifier: Apache-2.0 */
/* cuweir policies: what there is. And trying one before a program depends on it. */
#include "command.h"

#include <cuweir/policy.h>
#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- a host that does nothing, for `open` in a process that ends right after --------------- */

static int reason_fd;

static int host_log(const struct cuweir_host *host, const char *line)
{
	(void)host, (void)line;
	return CUWEIR_SUCCESS;
}

static int host_refuse(const struct cuweir_host *host, const char *reason)
{
	(void)host;
	if (reason != NULL && write(reason_fd, reason, strlen(reason)) < 0) {
		_exit(1);
	}
	return CUWEIR_ERROR_INVALID_VALUE;
}

static int host_totals(const struct cuweir_host *host, int device, int kind,
		       struct cuweir_totals *ret_totals)
{
	size_t size = ret_totals->struct_size;

	(void)host, (void)device, (void)kind;
	memset(ret_totals, 0, size);
	ret_totals->struct_size = size;
	return CUWEIR_SUCCESS;
}

static int host_set_debug(const struct cuweir_host *host, bool on)
{
	(void)host, (void)on;
	return CUWEIR_SUCCESS;
}

static bool host_get_debug(const struct cuweir_host *host)
{
	(void)host;
	return false;
}

static int host_driver_function(const struct cuweir_host *host, const char *symbol,
				void **ret_function)
{
	(void)host, (void)symbol, (void)ret_function;
	return CUWEIR_ERROR_NOT_FOUND;
}

static const struct cuweir_event *host_current_event(const struct cuweir_host *host)
{
	(void)host;
	return NULL;
}

static int host_set_budget(const struct cuweir_host *host, int device, uint32_t kinds,
			   uint64_t bytes)
{
	(void)host, (void)device, (void)kinds, (void)bytes;
	return CUWEIR_SUCCESS;
}

static int host_get_budget(const struct cuweir_host *host, int device, uint64_t *ret_bytes,
			   uint64_t *ret_used, uint64_t *ret_reserved)
{
	(void)host, (void)device, (void)ret_bytes, (void)ret_used, (void)ret_reserved;
	return CUWEIR_ERROR_NOT_FOUND;
}

static const struct cuweir_host trial_host = {
	.struct_size = sizeof(struct cuweir_host),
	.version = CUWEIR_POLICY_VERSION,
	.shim_version = "trial",
	.log = host_log,
	.refuse = host_refuse,
	.totals = host_totals,
	.set_debug = host_set_debug,
	.get_debug = host_get_debug,
	.driver_function = host_driver_function,
	.current_event = host_current_event,
	.set_budget = host_set_budget,
	.get_budget = host_get_budget,
};

/* ---- in the trial process; what it writes is the reason ------------------------------------- */

static void say(const char *text)
{
	if (write(reason_fd, text, strlen(text)) < 0) {
		_exit(1);
	}
	_exit(1);
}

static void try_policy(const char *path, const char *arguments)
{
	void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	const struct cuweir_policy *policy;
	char text[128];
	void *state = NULL;

	if (handle == NULL) {
		say(dlerror());
	}
	policy = dlsym(handle, "cuweir_policy_entry");
	if (policy == NULL) {
		say("it exports no cuweir_policy_entry; want a plugin made with cuweir/policy.h");
	}
	if (policy->version == 0 || policy->version > CUWEIR_POLICY_VERSION) {
		snprintf(text, sizeof(text), "made for version %u of the policy contract; this "
			 "cuweir has %u", policy->version, CUWEIR_POLICY_VERSION);
		say(text);
	}
	/* Files that it would make are made in the program's own run, not here. */
	if (policy->open != NULL && policy->open(&trial_host, arguments, &state) != 0) {
		_exit(1);
	}
	_exit(0);
}

const char *check_policy(const struct places *places, const char *element, char *buffer,
			 size_t size)
{
	const char *colon = strchr(element, ':');
	size_t length = colon != NULL ? (size_t)(colon - element) : strlen(element);
	char path[2 * PATH_SIZE];
	ssize_t got = 0;
	int ends[2];
	int status;
	pid_t child;

	if (memchr(element, '/', length) != NULL) {
		snprintf(path, sizeof(path), "%.*s", (int)length, element);
	} else {
		snprintf(path, sizeof(path), "%s/%.*s.so", places->policies, (int)length, element);
	}
	if (access(path, R_OK) != 0) {
		snprintf(buffer, size, "there is no such policy (%s); want one that cuweir policies "
			 "lists, or a path with a /", path);
		return buffer;
	}
	if (pipe(ends) != 0 || (child = fork()) < 0) {
		return "cannot fork to try it";
	}
	if (child == 0) {
		close(ends[0]);
		reason_fd = ends[1];
		try_policy(path, colon != NULL ? colon + 1 : "");
	}
	close(ends[1]);
	got = read(ends[0], buffer, size - 1);
	close(ends[0]);
	waitpid(child, &status, 0);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
		return NULL;
	}
	if (got > 0) {
		buffer[got] = '\0';
	} else {
		snprintf(buffer, size, "it does not open, and says no reason");
	}
	return buffer;
}

/* ---- the list ----------------------------------------------------------------------------------- */

static bool describe(const char *path, bool whole)
{
	void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	const struct cuweir_policy *policy =
		handle != NULL ? dlsym(handle, "cuweir_policy_entry") : NULL;

	if (policy == NULL || policy->version > CUWEIR_POLICY_VERSION) {
		complain("%s: %s", path, handle == NULL ? dlerror() : "not a policy of this version");
		return false;
	}
	printf("%-10s %s\n", policy->name, policy->summary != NULL ? policy->summary : "");
	if (whole) {
		printf("           contract version %u, %s\n", policy->version, path);
	}
	for (const char *at = policy->arguments; at != NULL && *at != '\0';) {
		int length = (int)strcspn(at, "\n");

		printf("           %.*s\n", length, at);
		at += length;
		at += *at == '\n';
	}
	return true;
}

static int is_plugin(const struct dirent *entry)
{
	size_t length = strlen(entry->d_name);

	return length > 3 && strcmp(entry->d_name + length - 3, ".so") == 0;
}

int command_policies(int argc, char **argv)
{
	struct places places;
	struct dirent **entries;
	char path[2 * PATH_SIZE];
	bool good = true;
	int count;

	if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
		puts("usage: cuweir policies [NAME or PATH]\n\n"
		     "Lists the policies that are installed, with their arguments; one in full.");
		return 0;
	}
	find_places(&places);
	if (argc > 1) {
		if (strchr(argv[1], '/') != NULL) {
			snprintf(path, sizeof(path), "%s", argv[1]);
		} else {
			snprintf(path, sizeof(path), "%s/%s.so", places.policies, argv[1]);
		}
		return describe(path, true) ? 0 : 1;
	}
	if (places.policies[0] == '\0' ||
	    (count = scandir(places.policies, &entries, is_plugin, alphasort)) < 0) {
		refuse("no directory of policies beside this command");
	}
	for (int i = 0; i < count; i++) {
		snprintf(path, sizeof(path), "%s/%s", places.policies, entries[i]->d_name);
		good &= describe(path, false);
	}
	return good && count > 0 ? 0 : 1;
}
