/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The binary layout of policy.h on 64-bit Linux, pinned: plugins that are out there were
 * compiled with it. A line here is never changed; entries taken from `reserved` add one.
 * Included by test_header.c and test_header.cpp, after policy.h.
 */
#ifndef TESTS_HEADER_ABI_H
#define TESTS_HEADER_ABI_H

#include <assert.h>

#define ABI_SIZE(name, bytes) static_assert(sizeof(struct name) == (bytes), #name)
#define ABI_OFFSET(name, member, bytes) \
	static_assert(offsetof(struct name, member) == (bytes), #name "." #member)
#define ABI_VALUE(name, value) static_assert((name) == (value), #name)

ABI_SIZE(cuweir_event, 144);
ABI_OFFSET(cuweir_event, struct_size, 0);
ABI_OFFSET(cuweir_event, call, 8);
ABI_OFFSET(cuweir_event, kind, 16);
ABI_OFFSET(cuweir_event, device, 20);
ABI_OFFSET(cuweir_event, context, 24);
ABI_OFFSET(cuweir_event, stream, 32);
ABI_OFFSET(cuweir_event, pointer, 40);
ABI_OFFSET(cuweir_event, requested, 48);
ABI_OFFSET(cuweir_event, charged, 56);
ABI_OFFSET(cuweir_event, total_before, 64);
ABI_OFFSET(cuweir_event, total_after, 72);
ABI_OFFSET(cuweir_event, thread, 80);
ABI_OFFSET(cuweir_event, retry_count, 88);
ABI_OFFSET(cuweir_event, status, 92);
ABI_OFFSET(cuweir_event, flags, 96);
ABI_OFFSET(cuweir_event, reserved0, 100);
ABI_OFFSET(cuweir_event, call_site, 104);
ABI_OFFSET(cuweir_event, reserved, 112);

ABI_SIZE(cuweir_totals, 72);
ABI_OFFSET(cuweir_totals, struct_size, 0);
ABI_OFFSET(cuweir_totals, current, 8);
ABI_OFFSET(cuweir_totals, peak, 16);
ABI_OFFSET(cuweir_totals, held, 24);
ABI_OFFSET(cuweir_totals, allocations, 32);
ABI_OFFSET(cuweir_totals, frees, 40);
ABI_OFFSET(cuweir_totals, reserved, 48);

ABI_SIZE(cuweir_record, 88);
ABI_OFFSET(cuweir_record, struct_size, 0);
ABI_OFFSET(cuweir_record, call, 8);
ABI_OFFSET(cuweir_record, kind, 16);
ABI_OFFSET(cuweir_record, device, 20);
ABI_OFFSET(cuweir_record, context, 24);
ABI_OFFSET(cuweir_record, pointer, 32);
ABI_OFFSET(cuweir_record, charged, 40);
ABI_OFFSET(cuweir_record, call_site, 48);
ABI_OFFSET(cuweir_record, reserved, 56);

ABI_SIZE(cuweir_memory_info, 72);
ABI_OFFSET(cuweir_memory_info, struct_size, 0);
ABI_OFFSET(cuweir_memory_info, call, 8);
ABI_OFFSET(cuweir_memory_info, device, 16);
ABI_OFFSET(cuweir_memory_info, reserved0, 20);
ABI_OFFSET(cuweir_memory_info, free_bytes, 24);
ABI_OFFSET(cuweir_memory_info, total_bytes, 32);
ABI_OFFSET(cuweir_memory_info, reserved, 40);

ABI_SIZE(cuweir_interface_info, 16);
ABI_OFFSET(cuweir_interface_info, kind, 0);
ABI_OFFSET(cuweir_interface_info, major, 8);
ABI_OFFSET(cuweir_interface_info, minor, 12);

ABI_SIZE(cuweir_allocator, 128);
ABI_OFFSET(cuweir_allocator, struct_size, 0);
ABI_OFFSET(cuweir_allocator, allocate_async, 8);
ABI_OFFSET(cuweir_allocator, deallocate_async, 16);
ABI_OFFSET(cuweir_allocator, reallocate, 24);
ABI_OFFSET(cuweir_allocator, allocate, 32);
ABI_OFFSET(cuweir_allocator, deallocate, 40);
ABI_OFFSET(cuweir_allocator, get_interface_info, 48);
ABI_OFFSET(cuweir_allocator, get_api_language, 56);
ABI_OFFSET(cuweir_allocator, reserved, 64);

ABI_SIZE(cuweir_host, 344);
ABI_OFFSET(cuweir_host, struct_size, 0);
ABI_OFFSET(cuweir_host, version, 8);
ABI_OFFSET(cuweir_host, flags, 12);
ABI_OFFSET(cuweir_host, shim_version, 16);
ABI_OFFSET(cuweir_host, instance, 24);
ABI_OFFSET(cuweir_host, log, 32);
ABI_OFFSET(cuweir_host, refuse, 40);
ABI_OFFSET(cuweir_host, totals, 48);
ABI_OFFSET(cuweir_host, walk, 56);
ABI_OFFSET(cuweir_host, wait_for_free, 64);
ABI_OFFSET(cuweir_host, set_debug, 72);
ABI_OFFSET(cuweir_host, get_debug, 80);
ABI_OFFSET(cuweir_host, driver_function, 88);
ABI_OFFSET(cuweir_host, current_event, 96);
ABI_OFFSET(cuweir_host, set_budget, 104);
ABI_OFFSET(cuweir_host, get_budget, 112);
ABI_OFFSET(cuweir_host, reservation_open, 120);
ABI_OFFSET(cuweir_host, reservation_add, 128);
ABI_OFFSET(cuweir_host, reservation_reserve, 136);
ABI_OFFSET(cuweir_host, reservation_get_size, 144);
ABI_OFFSET(cuweir_host, reservation_is_used, 152);
ABI_OFFSET(cuweir_host, reservation_is_closed, 160);
ABI_OFFSET(cuweir_host, reservation_allocate_buffer, 168);
ABI_OFFSET(cuweir_host, reservation_close, 176);
ABI_OFFSET(cuweir_host, reservation_destroy, 184);
ABI_OFFSET(cuweir_host, trim, 192);
ABI_OFFSET(cuweir_host, next, 200);
ABI_OFFSET(cuweir_host, next_state, 208);
ABI_OFFSET(cuweir_host, set_callbacks, 216);
ABI_OFFSET(cuweir_host, directory, 224);
ABI_OFFSET(cuweir_host, reserved, 232);

ABI_SIZE(cuweir_policy, 312);
ABI_OFFSET(cuweir_policy, struct_size, 0);
ABI_OFFSET(cuweir_policy, version, 8);
ABI_OFFSET(cuweir_policy, flags, 12);
ABI_OFFSET(cuweir_policy, kinds, 16);
ABI_OFFSET(cuweir_policy, serves, 20);
ABI_OFFSET(cuweir_policy, name, 24);
ABI_OFFSET(cuweir_policy, summary, 32);
ABI_OFFSET(cuweir_policy, arguments, 40);
ABI_OFFSET(cuweir_policy, open, 48);
ABI_OFFSET(cuweir_policy, close, 56);
ABI_OFFSET(cuweir_policy, get_alloc_thresholds, 64);
ABI_OFFSET(cuweir_policy, get_dealloc_thresholds, 72);
ABI_OFFSET(cuweir_policy, on_alloc_threshold, 80);
ABI_OFFSET(cuweir_policy, on_dealloc_threshold, 88);
ABI_OFFSET(cuweir_policy, on_alloc_failure, 96);
ABI_OFFSET(cuweir_policy, on_alloc_failure_size, 104);
ABI_OFFSET(cuweir_policy, on_allocated, 112);
ABI_OFFSET(cuweir_policy, on_deallocated, 120);
ABI_OFFSET(cuweir_policy, admit, 128);
ABI_OFFSET(cuweir_policy, on_alloc_failed, 136);
ABI_OFFSET(cuweir_policy, before_free, 144);
ABI_OFFSET(cuweir_policy, on_context_ended, 152);
ABI_OFFSET(cuweir_policy, on_stream_ended, 160);
ABI_OFFSET(cuweir_policy, memory_info, 168);
ABI_OFFSET(cuweir_policy, allocator, 176);
ABI_OFFSET(cuweir_policy, reserved, 184);

ABI_VALUE(CUWEIR_POLICY_VERSION, 1);
ABI_VALUE(CUWEIR_SUCCESS, 0);
ABI_VALUE(CUWEIR_ERROR_INVALID_VALUE, 1);
ABI_VALUE(CUWEIR_ERROR_OUT_OF_MEMORY, 2);
ABI_VALUE(CUWEIR_ERROR_NOT_FOUND, 500);
ABI_VALUE(CUWEIR_ERROR_NOT_READY, 600);
ABI_VALUE(CUWEIR_ERROR_NOT_PERMITTED, 800);
ABI_VALUE(CUWEIR_ERROR_NOT_SUPPORTED, 801);
ABI_VALUE(CUWEIR_ERROR_UNKNOWN, 999);
ABI_VALUE(CUWEIR_KIND_NONE, 0);
ABI_VALUE(CUWEIR_KIND_DEVICE, 1);
ABI_VALUE(CUWEIR_KIND_MANAGED, 2);
ABI_VALUE(CUWEIR_KIND_HOST, 3);
ABI_VALUE(CUWEIR_KIND_REGISTERED, 4);
ABI_VALUE(CUWEIR_KIND_IMPORTED, 5);
ABI_VALUE(CUWEIR_KIND_VIRTUAL, 6);
ABI_VALUE(CUWEIR_KIND_POOL, 7);
ABI_VALUE(CUWEIR_KIND_GRAPH_PLANNED, 8);
ABI_VALUE(CUWEIR_EVENT_NESTED, 1);
ABI_VALUE(CUWEIR_EVENT_CAPTURING, 2);
ABI_VALUE(CUWEIR_EVENT_STREAM_ORDERED, 4);
ABI_VALUE(CUWEIR_EVENT_PER_THREAD, 8);
ABI_VALUE(CUWEIR_EVENT_UNDO, 16);
ABI_VALUE(CUWEIR_EVENT_CONTEXT_END, 32);
ABI_VALUE(CUWEIR_EVENT_HELD, 64);
ABI_VALUE(CUWEIR_API_LANGUAGE_CPP, 0);
ABI_VALUE(CUWEIR_API_LANGUAGE_PYTHON, 1);
ABI_VALUE(CUWEIR_API_LANGUAGE_C, 2);
ABI_VALUE(CUWEIR_ALLOCATOR_RESIZABLE, 1);
ABI_VALUE(CUWEIR_POLICY_CAPTURE_SAFE, 1);
ABI_VALUE(CUWEIR_POLICY_DEBUG, 2);
ABI_VALUE(CUWEIR_POLICY_SILENT, 4);
ABI_VALUE(CUWEIR_KIND_COUNT, 9);
ABI_VALUE(CUWEIR_KIND_BIT(CUWEIR_KIND_GRAPH_PLANNED), 256);

#endif
