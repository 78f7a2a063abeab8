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

#include "builtin.h"
#include "chain.h"
#include "config.h"
#include "counts.h"
#include "handles.h"
#include "host.h"
#include "ledger.h"
#include "message.h"
#include "old_glibc.h"
#include "origins.h"
#include "report.h"
#include "thread.h"
#include "totals.h"
#include "wait.h"
#include "where.h"

int cw_phase_;

static uint32_t opener;  /* thread id, while opening */
static bool forked;      /* a child of fork after the opening: silent at its exit */

static void set_phase(int phase)
{
	__atomic_store_n(&cw_phase_, phase, __ATOMIC_RELEASE);
	syscall(SYS_futex, &cw_phase_, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

/*
 * Before atexit handlers that were there when we opened, and before static objects of C++
 * policies go: after this no policy is called (P-40).
 */
static void at_exit(void)
{
	cw_chain_close(forked);
}

static void before_fork(void)
{
	cw_origins_prefork();
	cw_ledger_prefork();
	cw_handles_prefork();
}

static void after_fork_parent(void)
{
	cw_handles_postfork_parent();
	cw_ledger_postfork_parent();
	cw_origins_postfork_parent();
}

/* What the parent holds is not the child's: its CUDA contexts do not survive (P-39). */
static void after_fork_child(void)
{
	cw_handles_postfork_child();
	cw_ledger_postfork_child();
	cw_origins_postfork_child();
	cw_totals_postfork_child();
	cw_counts_postfork_child();
	cw_wait_postfork_child();
	cw_where_postfork_child();
	if (__atomic_load_n(&cw_phase_, __ATOMIC_RELAXED) == CW_PHASE_OPENING) {
		/* Another thread of the parent was at it; the child begins anew. */
		__atomic_store_n(&cw_phase_, CW_PHASE_NEW, __ATOMIC_RELEASE);
	}
	forked = __atomic_load_n(&cw_phase_, __ATOMIC_RELAXED) == CW_PHASE_OPEN;
}

static void open_all(void)
{
	int failures = cw_config_complain();

	if (cw_config.log != NULL && !cw_message_open_log(cw_config.log)) {
		failures++;
	}
	if (cw_config.policy != NULL) {
		failures += cw_chain_open(cw_config.policy);
	} else if (cw_config.debug) {
		failures += cw_chain_open(CW_BUILTIN_LINES);
	}
	if (cw_config.debug) {
		cw_debug_set(true);
	}
	if (failures != 0 && cw_config.strict) {
		cw_message(CW_ERROR, "CUWEIR_STRICT=1: the program ends here with status 127");
		_exit(127);
	}
	atexit(at_exit);
}

/*
 * Another thread is opening. It may be in a policy's open, or wait for the loader's lock,
 * which this thread may hold: so not for ever.
 */
static bool wait_for_opening(void)
{
	struct timespec patience = { .tv_sec = 5 };

	syscall(SYS_futex, &cw_phase_, FUTEX_WAIT_PRIVATE, CW_PHASE_OPENING, &patience, NULL, 0);
	return true;
}

static bool open_now(void)
{
	int expected = CW_PHASE_NEW;

	cw_config_load();
	if (cw_config.disabled) {
		__atomic_store_n(&cw_phase_, CW_PHASE_DISABLED, __ATOMIC_RELEASE);
		return false;
	}
	if (__atomic_compare_exchange_n(&cw_phase_, &expected, CW_PHASE_OPENING, false,
					__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
		__atomic_store_n(&opener, cw_thread_id(), __ATOMIC_RELAXED);
		pthread_atfork(before_fork, after_fork_parent, after_fork_child);
		open_all();
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
	bool ready = open_now();

	errno = saved_errno;
	return ready;
}

__attribute__((constructor)) static void on_load(void)
{
	cw_config_load();
	if (cw_config.disabled) {
		__atomic_store_n(&cw_phase_, CW_PHASE_DISABLED, __ATOMIC_RELEASE);
	}
}

__attribute__((destructor)) static void on_unload(void)
{
	if (__atomic_load_n(&cw_phase_, __ATOMIC_ACQUIRE) == CW_PHASE_OPEN && !forked) {
		cw_chain_close(false);
		if (cw_config.report != NULL) {
			cw_report();
		}
	}
}
