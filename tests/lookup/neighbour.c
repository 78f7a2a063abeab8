/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program for check_neighbours: look-ups, threads, allocations and time, beside other
 * tools that interpose. Argument: a stand-in driver. Prints "fine" at the end.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static void *work(void *driver)
{
	for (int i = 0; i < 200; i++) {
		void *memory = malloc((size_t)i * 100 + 1);

		if (dlsym(driver, "cuMemAlloc_v2") == NULL || dlsym(RTLD_DEFAULT, "open") == NULL ||
		    dlsym(RTLD_NEXT, "malloc") == NULL || memory == NULL) {
			exit(2);
		}
		free(memory);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	void *driver = dlopen(argc > 1 ? argv[1] : "", RTLD_NOW);
	pthread_t threads[4];
	int (*alloc)(void *, size_t);
	int file = open("/dev/null", O_RDONLY);

	if (driver == NULL || file < 0) {
		return 3;
	}
	close(file);
	for (int i = 0; i < 4; i++) {
		pthread_create(&threads[i], NULL, work, driver);
	}
	for (int i = 0; i < 4; i++) {
		pthread_join(threads[i], NULL);
	}
	alloc = (int (*)(void *, size_t))dlsym(driver, "cuMemAlloc_v2");
	alloc(NULL, 0);
	if (dlsym(driver, "cuNoSuch") != NULL || dlerror() == NULL || time(NULL) == 0) {
		return 4;
	}
	puts("fine");
	return 0;
}
