/* SPDX-License-Identifier: Apache-2.0 */
/* cuweir policies: what there is. */
#include "command.h"

#include <cuweir/policy.h>
#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool describe(const char *path, bool whole)
{
	void *handle = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
	const struct cuweir_policy *policy =
		handle != NULL ? dlsym(handle, "cuweir_policy_entry") : NULL;

	if (policy == NULL || policy->struct_size < offsetof(struct cuweir_policy, open) ||
	    policy->version == 0 || policy->version > CUWEIR_POLICY_VERSION ||
	    policy->name == NULL) {
		if (handle == NULL) {
			complain("%s; want a plugin made with cuweir/policy.h", dlerror());
		} else {
			complain("%s: it has no policy of this version in it; want a plugin made with "
				 "cuweir/policy.h", path);
		}
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

	if (wants_help(argc, argv)) {
		puts("usage: cuweir policies [NAME | PATH]\n\n"
		     "Lists the policies that are installed, with their arguments; or that one.");
		return 0;
	}
	find_places(&places);
	if (argc > 2) {
		refuse("policies: want one name, or none for all");
	}
	if (argc > 1) {
		if (strchr(argv[1], '/') != NULL) {
			snprintf(path, sizeof(path), "%s", argv[1]);
		} else {
			snprintf(path, sizeof(path), "%s/%s.so", places.policies, argv[1]);
		}
		if (access(path, F_OK) != 0) {
			refuse("%s: there is no such policy; want one that cuweir policies lists, "
			       "or a path with a /", argv[1]);
		}
		return describe(path, true) ? 0 : STATUS_BAD_SETTING;
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
