/* SPDX-License-Identifier: Apache-2.0 */
#include "query.h"

#include "chain.h"
#include "handlers.h"
#include "lifecycle.h"
#include "thread.h"
#include "totals.h"

static uint64_t totals_told[CW_TOTAL_DEVICES];

bool cw_query_wanted(void)
{
	return cw_ready() && CW_UNLIKELY(cw_chain_wants(CW_CHAIN_MEMORY_INFO)) &&
	       cw_chain_count() != 0 &&
	       cw_thread.in_callback == 0;
}

const char *cw_query_call(enum cw_hook_id hook)
{
	enum cw_hook_id outer;

	if (cw_thread.runtime_hook == 0) {
		return cw_hook_base(hook);
	}
	outer = (enum cw_hook_id)(cw_thread.runtime_hook - 1);
	switch ((int)outer) {
	case CW_HOOK_cudaMemGetInfo:
	case CW_HOOK_cudaGetDeviceProperties:
	case CW_HOOK_cudaGetDeviceProperties_v2:
		return cw_hook_base(outer);
	default:
		/* A runtime that learns its devices at some other call. */
		return cw_hook_base(hook);
	}
}

static uint64_t lower(uint64_t asked, uint64_t answer)
{
	return answer < asked ? answer : asked;
}

void cw_query_answer(struct cw_query *query)
{
	bool both = query->total_bytes != 0;

	for (uint32_t i = cw_chain_count(); i > 0; i--) {
		struct cuweir_memory_info info = {
			.struct_size = sizeof(info),
			.call = query->call,
			.device = query->device,
			.free_bytes = query->free_bytes,
			.total_bytes = query->total_bytes,
		};

		cw_ask_memory_info(&cw_chain.policies[i - 1], &info);
		query->total_bytes = lower(query->total_bytes, info.total_bytes);
		query->free_bytes = lower(query->free_bytes, info.free_bytes);
		if (both) {
			query->free_bytes = lower(query->total_bytes, query->free_bytes);
		}
	}
}

void cw_query_note_total(int device, uint64_t total)
{
	if (device >= 0 && device < CW_TOTAL_DEVICES) {
		__atomic_store_n(&totals_told[device], total, __ATOMIC_RELAXED);
	}
}

bool cw_query_total_told(int device, uint64_t total)
{
	return device >= 0 && device < CW_TOTAL_DEVICES && total != 0 &&
	       __atomic_load_n(&totals_told[device], __ATOMIC_RELAXED) == total;
}
