/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interposers that cuweir is measured beside, as one would write them by hand.
 * FORWARD: forwards, and nothing else. ATOMIC: one shared counter of bytes. LIST: a list of
 * what is live, newest first, behind a lock.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define API __attribute__((visibility("default")))

typedef unsigned long long address;

API int cuMemAlloc_v2(address *ret, size_t bytes);
API int cuMemFree_v2(address memory);

static int (*found_alloc)(address *, size_t);
static int (*found_free)(address);

static inline int real_alloc(address *ret, size_t bytes)
{
	if (__builtin_expect(found_alloc == NULL, 0)) {
		found_alloc = (int (*)(address *, size_t))dlsym(RTLD_NEXT, "cuMemAlloc_v2");
	}
	return found_alloc(ret, bytes);
}

static inline int real_free(address memory)
{
	if (__builtin_expect(found_free == NULL, 0)) {
		found_free = (int (*)(address))dlsym(RTLD_NEXT, "cuMemFree_v2");
	}
	return found_free(memory);
}

#if defined(ATOMIC)
static int64_t total;

static void note(address memory, size_t bytes)
{
	(void)memory;
	__atomic_fetch_add(&total, (int64_t)bytes, __ATOMIC_RELAXED);
}

/* It does not know the size: that is what a tracker is for. The add costs the same. */
static void forget(address memory)
{
	(void)memory;
	__atomic_fetch_sub(&total, 512, __ATOMIC_RELAXED);
}
#elif defined(LIST)
struct entry {
	struct entry *next;
	address memory;
	size_t bytes;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct entry *live;
static size_t total;

static void note(address memory, size_t bytes)
{
	struct entry *entry = malloc(sizeof(*entry));

	if (entry == NULL) {
		return;
	}
	entry->memory = memory;
	entry->bytes = bytes;
	pthread_mutex_lock(&lock);
	entry->next = live;
	live = entry;
	total += bytes;
	pthread_mutex_unlock(&lock);
}

static void forget(address memory)
{
	struct entry *found = NULL;

	pthread_mutex_lock(&lock);
	for (struct entry **at = &live; *at != NULL; at = &(*at)->next) {
		if ((*at)->memory == memory) {
			found = *at;
			*at = found->next;
			total -= found->bytes;
			break;
		}
	}
	pthread_mutex_unlock(&lock);
	free(found);
}
#else
#define forget(memory) ((void)0)
#endif

int cuMemAlloc_v2(address *ret, size_t bytes)
{
#if defined(FORWARD)
	return real_alloc(ret, bytes);
#else
	int result = real_alloc(ret, bytes);

	if (result == 0) {
		note(*ret, bytes);
	}
	return result;
#endif
}

int cuMemFree_v2(address memory)
{
	forget(memory);
	return real_free(memory);
}
