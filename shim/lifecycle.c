/* SPDX-License-Identifier: Apache-2.0 */
#include "lifecycle.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "budget.h"
#include "chain.h"
#include "config.h"
#include "context_end.h"
#include "counts.h"
#include "graph_books.h"
#include "handles.h"
#include "host.h"
#include "ledger.h"
#include "message.h"
#include "old_glibc.h"
#include "origins.h"
#include "peaks.h"
#include "plain.h"
#include "program.h"
#include "report.h"
#include "resolve.h"
#include "result.h"
#include "scopes.h"
#include "stacks.h"
#include "thread.h"
#include "totals.h"
#include "wait.h"
#include "where.h"
#include "within_loader.h"

int cw_phase_;

static uint32_t loader;  /* thread id of the first one that loads the plugins */
static uint32_t opener;  /* thread id, while opening */
static pid_t owner;      /* the process that opened: a child of it is silent at its exit */

static pid_t loaded_by; /* under cuweir run: children of fork say nothing at their end */

static void set_phase(int phase)
{
	__atomic_store_n(&cw_phase_, phase, __ATOMIC_RELEASE);
	syscall(SYS_futex, &cw_phase_, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

/* Children that no fork handler hears of are told apart, too. */
static bool is_owner(void)
{
	return getpid() == owner;
}

/*
 * Before atexit handlers that were there when we opened, and before static objects of C++
 * policies go: after this no policy is called (P-40).
 */
static void at_exit(void)
{
	cw_chain_close(!is_owner());
}

/*
 * What the parent holds is not the child's: its CUDA contexts do not survive (P-39). No book is
 * locked before the fork: the child forgets them, whatever state they were copied in, and other
 * libraries' fork handlers may take locks that a thread in a CUDA call holds.
 */
static void after_fork_child(void)
{
	cw_resolve_postfork_child();
	cw_handles_postfork_child();
	cw_ledger_postfork_child();
	cw_origins_postfork_child();
	cw_totals_postfork_child();
	cw_counts_postfork_child();
	cw_peaks_postfork_child();
	cw_budgets_postfork_child();
	cw_scopes_postfork_child();
	cw_wait_postfork_child();
	cw_where_postfork_child();
	cw_graph_books_postfork_child();
	cw_plain_postfork_child();
	cw_program_postfork_child();
	cw_context_end_postfork_child();
	cw_result_postfork_child();
	cw_stacks_postfork_child();
	__atomic_store_n(&loader, 0, __ATOMIC_RELAXED);
	if (__atomic_load_n(&cw_phase_, __ATOMIC_RELAXED) == CW_PHASE_OPENING) {
		/* Another thread of the parent was at it; the child begins anew. */
		__atomic_store_n(&cw_phase_, CW_PHASE_NEW, __ATOMIC_RELEASE);
	}
}

static void open_all(const struct cw_plugins *plugins)
{
	int failures = cw_config_complain();

	if (cw_config.report != NULL) {
		cw_peaks_start();
	}
	if (cw_config.stack > 0) {
		cw_stacks_open((unsigned int)cw_config.stack);
	}
	if (cw_config.result != NULL) {
		cw_result_open(cw_config.result);
	}
	if (cw_config.log != NULL && !cw_message_open_log(cw_config.log)) {
		failures++;
	}
	failures += cw_chain_open(cw_config.policy, plugins, cw_config.debug);
	if (cw_config.debug) {
		cw_debug_set(true);
	}
	if (failures != 0 && cw_config.trial) {
		_exit(127);
	}
	if (failures != 0 && cw_config.strict) {
		cw_message(CW_ERROR, "CUWEIR_STRICT=1: the program ends here with status 127");
		_exit(127);
	}
	atexit(at_exit);
}

/*
 * Another thread is loading the plugins, or opens the policies. Either may wait for the loader's
 * lock, which this thread may hold, or one that waits for this one: so not for ever.
 */
static bool wait_for_opening(void)
{
	static bool given_up; /* once is enough, of all threads */
	struct timespec deadline;
	long result = 0;
	int phase;

	if (__atomic_load_n(&given_up, __ATOMIC_RELAXED)) {
		return true;
	}
	clock_gettime(CLOCK_MONOTONIC, &deadline);
	deadline.tv_sec += 5;
	/* A signal is no reason to go on without the policies. */
	while (result == 0) {
		phase = __atomic_load_n(&cw_phase_, __ATOMIC_ACQUIRE);
		if (phase != CW_PHASE_NEW && phase != CW_PHASE_OPENING) {
			return phase != CW_PHASE_DISABLED;
		}
		result = syscall(SYS_futex, &cw_phase_, FUTEX_WAIT_BITSET_PRIVATE, phase, &deadline,
				 NULL, FUTEX_BITSET_MATCH_ANY);
		if (result < 0 && errno != ETIMEDOUT) {
			result = 0;
		}
	}
	if (!__atomic_exchange_n(&given_up, true, __ATOMIC_RELAXED)) {
		cw_message(CW_ERROR, "a policy's open takes longer than 5 s, or waits for this thread, "
				     "as for a constructor: calls go on without policies meanwhile");
	}
	return true;
}

/*
 * Before any thread opens: one that loads may have to wait for the loader's lock, which another
 * one may hold that comes here, as in a constructor. That one loads by itself, and may be the first
 * to open. All others wait for the first. False: a plugin's constructor has called, or there is
 * nothing more to wait for.
 */
static bool load_plugins(struct cw_plugins *ret_plugins)
{
	static CW_TLS bool is_loading;
	uint32_t expected = 0;

	if (is_loading) {
		return false;
	}
	if (!__atomic_compare_exchange_n(&loader, &expected, cw_thread_id(), false, __ATOMIC_RELAXED,
					 __ATOMIC_RELAXED) && !cw_within_loader()) {
		(void)wait_for_opening();
		return false;
	}
	is_loading = true;
	cw_chain_load(cw_config.policy, ret_plugins);
	is_loading = false;
	return true;
}

static bool open_now(void)
{
	int expected = __atomic_load_n(&cw_phase_, __ATOMIC_ACQUIRE);
	struct cw_plugins plugins;

	cw_config_load();
	if (cw_config.disabled) {
		__atomic_store_n(&cw_phase_, CW_PHASE_DISABLED, __ATOMIC_RELEASE);
		return false;
	}
	if (expected == CW_PHASE_NEW && !load_plugins(&plugins)) {
		return __atomic_load_n(&cw_phase_, __ATOMIC_ACQUIRE) != CW_PHASE_DISABLED;
	}
	if (expected == CW_PHASE_NEW &&
	    __atomic_compare_exchange_n(&cw_phase_, &expected, CW_PHASE_OPENING, false,
					__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
		__atomic_store_n(&opener, cw_thread_id(), __ATOMIC_RELAXED);
		owner = getpid();
		open_all(&plugins);
		cw_plain_open();
		set_phase(CW_PHASE_OPEN);
		return true;
	}
	if (expected == CW_PHASE_OPENING &&
	    __atomic_load_n(&opener, __ATOMIC_RELAXED) != cw_thread_id()) {
		return wait_for_opening();
	}
	return expected != CW_PHASE_DISABLED;
}

CW_COLD bool cw_open_(void)
{
	int saved_errno = errno;
	int cancel_state;
	bool ready;

	/* Else the others would wait for ever for a thread that was cancelled. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	ready = open_now();
	pthread_setcancelstate(cancel_state, NULL);
	errno = saved_errno;
	return ready;
}

__attribute__((constructor)) static void on_load(void)
{
	/*
	 * Before anything can be under way: one who is opening and comes to this while another
	 * thread forks waits for that, and the child would have the opening for ever.
	 */
	pthread_atfork(cw_resolve_prefork, cw_resolve_postfork_parent, after_fork_child);
	cw_config_load();
	loaded_by = cw_config.run ? getpid() : 0;
	if (!cw_config.follow) {
		cw_config_leave_children();
	}
	if (cw_config.disabled) {
		__atomic_store_n(&cw_phase_, CW_PHASE_DISABLED, __ATOMIC_RELEASE);
	}
}

__attribute__((destructor)) static void on_unload(void)
{
	if (__atomic_load_n(&cw_phase_, __ATOMIC_ACQUIRE) == CW_PHASE_OPEN && is_owner()) {
		cw_chain_close(false);
		if (cw_config.report != NULL) {
			cw_report();
		}
	} else if (cw_config.run && !cw_config.disabled && getpid() == loaded_by &&
		   cw_driver_unheard()) {
		cw_message(CW_ERROR, "the program loaded libcuda.so.1, but no call of its came through a "
				     "door of cuweir: if it used the GPU, nothing was watched (cuweir "
				     "check says why)");
	}
}
