/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How an exported function is written: SIM_API gives every one of them the same beginning
 * (counting, settings, injected failures, "not initialized") and the same end (the trace line).
 *
 *   SIM_API(symbol, (parameters), (values to trace), (values to trace on success), expression)
 *
 * SIM_API_PTSZ makes a symbol and its _ptsz twin from one line; the expression says ST(stream) for
 * the stream that NULL stands for in either. SIM_API_PTDS does the same for _ptds.
 */
#ifndef CUWEIR_SIM_CALL_H
#define CUWEIR_SIM_CALL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum sim_fn {
#define EXPORT(sym, base, version, flags) SIM_FN_##sym,
#include "exports.def"
#undef EXPORT
	SIM_FN_COUNT
};

struct sim_fn_info {
	const char *symbol;
	const char *base;
	int version;
	unsigned int flags;
	void *entry;
};

extern const struct sim_fn_info sim_fns[SIM_FN_COUNT];
extern _Atomic uint64_t sim_calls[SIM_FN_COUNT];
extern _Atomic bool sim_slow; /* something is to be looked at before a call */
extern _Atomic bool sim_traced;

struct sim_settings {
	uint64_t capacity;
	int devices;
	int driver_version;
	bool reissue, strict, scribble;
	unsigned long latency;
	int trace_fd;
};

extern struct sim_settings sim_set;

void sim_settings_ready(void);
void sim_settings_inited(void);
bool sim_is_alloc(enum sim_fn fn);
CUresult sim_enter_slow(enum sim_fn fn);

struct sim_line {
	size_t len;
	char text[1024];
};

void sim_trace_args(struct sim_line *l, enum sim_fn fn, const char *names, size_t n,
		    const uint64_t *values);
void sim_trace_outs(struct sim_line *l, const char *names, size_t n, const uint64_t *values);
void sim_trace_text(struct sim_line *l, const char *asked, const char *found);
void sim_trace_end(struct sim_line *l, CUresult r);

static inline CUresult sim_enter(enum sim_fn fn)
{
	atomic_fetch_add_explicit(&sim_calls[fn], 1, memory_order_relaxed);
	return atomic_load_explicit(&sim_slow, memory_order_acquire) ? sim_enter_slow(fn)
								     : CUDA_SUCCESS;
}

#define SIM_EXPORT __attribute__((visibility("default")))

#define SIM_V1(x) (uint64_t)(x)
#define SIM_V2(x, ...) (uint64_t)(x), SIM_V1(__VA_ARGS__)
#define SIM_V3(x, ...) (uint64_t)(x), SIM_V2(__VA_ARGS__)
#define SIM_V4(x, ...) (uint64_t)(x), SIM_V3(__VA_ARGS__)
#define SIM_V5(x, ...) (uint64_t)(x), SIM_V4(__VA_ARGS__)
#define SIM_V6(x, ...) (uint64_t)(x), SIM_V5(__VA_ARGS__)
#define SIM_V7(x, ...) (uint64_t)(x), SIM_V6(__VA_ARGS__)
#define SIM_V8(x, ...) (uint64_t)(x), SIM_V7(__VA_ARGS__)
#define SIM_PICK(a, b, c, d, e, f, g, h, name, ...) name
#define SIM_VALUES(...)                                                                            \
	SIM_PICK(__VA_ARGS__, SIM_V8, SIM_V7, SIM_V6, SIM_V5, SIM_V4, SIM_V3, SIM_V2, SIM_V1, 0)   \
	(__VA_ARGS__)
#define SIM_ARRAY_OF(...) ((const uint64_t[]){SIM_VALUES(__VA_ARGS__)})
#define SIM_COUNT_OF(...) (sizeof(SIM_ARRAY_OF(__VA_ARGS__)) / sizeof(uint64_t))
#define SIM_TEXT_OF(...) #__VA_ARGS__
#define SIM_OUT(p) ((p) != NULL ? (uint64_t)*(p) : 0)

#define SIM_BODY(sym, args, outs, body, on_error)                                                  \
	CUresult sim_r = sim_enter(SIM_FN_##sym);                                                  \
	if (sim_r == CUDA_SUCCESS) {                                                               \
		sim_r = body;                                                                      \
	}                                                                                          \
	if (sim_r != CUDA_SUCCESS) {                                                               \
		on_error;                                                                          \
	}                                                                                          \
	if (atomic_load_explicit(&sim_traced, memory_order_relaxed)) {                             \
		struct sim_line sim_l;                                                             \
		sim_trace_args(&sim_l, SIM_FN_##sym, SIM_TEXT_OF args, SIM_COUNT_OF args,          \
			       SIM_ARRAY_OF args);                                                 \
		if (sim_r == CUDA_SUCCESS) {                                                       \
			sim_trace_outs(&sim_l, SIM_TEXT_OF outs, SIM_COUNT_OF outs,                \
				       SIM_ARRAY_OF outs);                                         \
		}                                                                                  \
		sim_trace_end(&sim_l, sim_r);                                                      \
	}                                                                                          \
	return sim_r

#define SIM_DEFINE(sym, params, args, outs, body, per_thread, on_error)                            \
	SIM_EXPORT CUresult CUDAAPI sym params;                                                    \
	SIM_EXPORT CUresult CUDAAPI sym params                                                     \
	{                                                                                          \
		const bool sim_pt = per_thread;                                                    \
		(void)sim_pt;                                                                      \
		SIM_BODY(sym, args, outs, body, on_error);                                         \
	}

#define ST(stream) (stream), sim_pt

/* A failed allocation leaves the out pointer as it was, or scribbled over where a test wants to
 * see whether anybody reads it. */
#define SIM_SCRIBBLE(out)                                                                          \
	if (sim_set.scribble && (out) != NULL) {                                                   \
		*(out) = (__typeof__(*(out)))0xdead;                                               \
	}

#define SIM_API(sym, params, args, outs, body)                                                     \
	SIM_DEFINE(sym, params, args, outs, body, false, (void)0)
#define SIM_API_PTSZ(sym, params, args, outs, body)                                                \
	SIM_DEFINE(sym, params, args, outs, body, false, (void)0)                                  \
	SIM_DEFINE(sym##_ptsz, params, args, outs, body, true, (void)0)
#define SIM_API_PTDS(sym, params, args, outs, body)                                                \
	SIM_DEFINE(sym, params, args, outs, body, false, (void)0)                                  \
	SIM_DEFINE(sym##_ptds, params, args, outs, body, true, (void)0)
#define SIM_ALLOC(sym, out, params, args, outs, body)                                              \
	SIM_DEFINE(sym, params, args, outs, body, false, SIM_SCRIBBLE(out))
#define SIM_ALLOC_PTSZ(sym, out, params, args, outs, body)                                         \
	SIM_DEFINE(sym, params, args, outs, body, false, SIM_SCRIBBLE(out))                        \
	SIM_DEFINE(sym##_ptsz, params, args, outs, body, true, SIM_SCRIBBLE(out))
#endif
