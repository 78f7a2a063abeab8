/* SPDX-License-Identifier: Apache-2.0 */
#include "thresholds.h"

#include <errno.h>
#include <sys/mman.h>

static void sift_down(uint64_t *heap, size_t root, size_t count)
{
	for (;;) {
		size_t child = 2 * root + 1;
		uint64_t value = heap[root];

		if (child >= count) {
			return;
		}
		if (child + 1 < count && heap[child + 1] > heap[child]) {
			child++;
		}
		if (heap[child] <= value) {
			return;
		}
		heap[root] = heap[child];
		heap[child] = value;
		root = child;
	}
}

/* In place: libc's qsort may take memory, and this may run inside the program's allocator. */
static void sort(uint64_t *values, size_t count)
{
	for (size_t i = count / 2; i > 0; i--) {
		sift_down(values, i - 1, count);
	}
	for (size_t end = count; end > 1; end--) {
		uint64_t largest = values[0];

		values[0] = values[end - 1];
		values[end - 1] = largest;
		sift_down(values, 0, end - 1);
	}
}

int cw_thresholds_init(struct cw_thresholds *thresholds, const uint64_t *list, size_t count)
{
	uint64_t *values;

	thresholds->values = NULL;
	thresholds->count = 0;
	if (list == NULL || count == 0) {
		return 0;
	}
	/* Hints are 32 bits wide; such a list is 16 GiB long. */
	if (count > UINT32_MAX / 2) {
		return -ENOMEM;
	}
	values = mmap(NULL, (count + 2) * sizeof(*values), PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (values == MAP_FAILED) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < count; i++) {
		values[i + 1] = list[i];
	}
	sort(values + 1, count);
	values[0] = 0;
	values[count + 1] = UINT64_MAX;
	thresholds->values = values;
	thresholds->count = count + 2;
	return 0;
}

void cw_thresholds_release(struct cw_thresholds *thresholds)
{
	if (thresholds->values != NULL) {
		munmap((void *)(uintptr_t)thresholds->values,
		       thresholds->count * sizeof(*thresholds->values));
	}
	thresholds->values = NULL;
	thresholds->count = 0;
}

uint32_t cw_thresholds_search(const struct cw_thresholds *thresholds, uint64_t total)
{
	/* values[low] <= total < values[high]; no total reaches UINT64_MAX. */
	size_t low = 0;
	size_t high = thresholds->count - 1;

	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (thresholds->values[middle] <= total) {
			low = middle;
		} else {
			high = middle;
		}
	}
	return (uint32_t)low;
}
