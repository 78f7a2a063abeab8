/* SPDX-License-Identifier: Apache-2.0 */
#include "counts.h"

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

struct cw_count_stripe cw_count_stripes_[CW_COUNT_STRIPES];

CW_COLD uint32_t cw_thread_ask_id(void)
{
	cw_thread.tid = (uint32_t)syscall(SYS_gettid);
	return cw_thread.tid;
}

CW_COLD struct cw_count *cw_count_choose_stripe(void)
{
	cw_thread.counts = cw_count_stripes_[cw_thread_id() % CW_COUNT_STRIPES].cells;
	return cw_thread.counts;
}

void cw_counts_read(int device, unsigned int kind, uint64_t *ret_allocations, uint64_t *ret_frees)
{
	size_t index = cw_total_index(device, kind);

	*ret_allocations = 0;
	*ret_frees = 0;
	for (unsigned int i = 0; i < CW_COUNT_STRIPES; i++) {
		const struct cw_count *cell = &cw_count_stripes_[i].cells[index];

		*ret_allocations += __atomic_load_n(&cell->allocations, __ATOMIC_RELAXED);
		*ret_frees += __atomic_load_n(&cell->frees, __ATOMIC_RELAXED);
	}
}

void cw_counts_postfork_child(void)
{
	memset(cw_count_stripes_, 0, sizeof(cw_count_stripes_));
}
