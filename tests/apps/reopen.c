/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reopen PLUGIN RUNTIME TURNS [moving]: opens a plugin that brings the runtime with it, uses and
 * closes it, and takes the runtime's old place, so that it comes to lie elsewhere while the plugin
 * comes to its old one; or, moving, elsewhere too. Prints how many calls failed, and in how many
 * places the runtime has been.
 */
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

static void occupy(const void *handle_address)
{
	void *at = (void *)(uintptr_t)handle_address;

	(void)mmap(at, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
}

int main(int argc, char **argv)
{
	int turns = argc > 3 ? atoi(argv[3]) : 0;
	uintptr_t last = 0;
	int places = 0;
	int failed = 0;

	for (int i = 0; i < turns; i++) {
		struct link_map *plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
		struct link_map *runtime = dlopen(argv[2], RTLD_NOW | RTLD_NOLOAD);
		int (*use)(void) = NULL;
		uintptr_t plugin_at;

		if (plugin == NULL || runtime == NULL) {
			fprintf(stderr, "reopen: %s\n", dlerror());
			return 2;
		}
		*(void **)&use = dlsym(plugin, "use_cuda");
		failed += use == NULL || use() != 0;
		places += runtime->l_addr != last;
		last = runtime->l_addr;
		plugin_at = plugin->l_addr;
		dlclose(runtime);
		dlclose(plugin);
		if (argc > 4) {
			occupy((const void *)plugin_at);
		}
		occupy((const void *)last);
	}
	printf("failed %d, places %d\n", failed, places);
	return 0;
}
