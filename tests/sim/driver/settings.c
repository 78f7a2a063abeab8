/* SPDX-License-Identifier: Apache-2.0 */
/* CUWEIR_SIM_*: read once, at the first call of any driver function, with getenv. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "private.h"
#include "size.h"

struct sim_settings sim_set = {.trace_fd = -1};
_Atomic bool sim_slow = true;
_Atomic bool sim_traced;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Atomic bool inited;
static bool watched; /* rules, latency or strict capture: never the short way */
static bool forked;  /* a child of a process that had called cuInit: CUDA is not to be had */

static bool flag(const char *name)
{
	const char *s = getenv(name);

	return s != NULL && s[0] != '\0' && strcmp(s, "0") != 0;
}

/* Locks may have been another thread's: nothing but this is looked at in a child. */
static void after_fork_child(void)
{
	forked = forked || atomic_load(&inited);
	atomic_store(&inited, false);
	atomic_store(&sim_slow, true);
}

static void read_settings(void)
{
	const char *s = getenv("CUWEIR_SIM_CAPACITY");

	pthread_atfork(NULL, NULL, after_fork_child);
	sim_set.capacity = s != NULL && *s != '\0' ? sim_parse_size(s) : SIM_DEFAULT_CAPACITY;
	s = getenv("CUWEIR_SIM_DEVICES");
	sim_set.devices = s != NULL && *s != '\0' ? atoi(s) : 1;
	if (sim_set.devices > SIM_MAX_DEVICES) {
		sim_set.devices = SIM_MAX_DEVICES;
	}
	s = getenv("CUWEIR_SIM_DRIVER_VERSION");
	sim_set.driver_version = s != NULL && *s != '\0' ? atoi(s) : CUDA_VERSION;
	s = getenv("CUWEIR_SIM_LATENCY");
	sim_set.latency = s != NULL ? strtoul(s, NULL, 0) : 0;
	sim_set.reissue = flag("CUWEIR_SIM_REISSUE");
	sim_set.strict = flag("CUWEIR_SIM_STRICT_CAPTURE");
	sim_set.scribble = flag("CUWEIR_SIM_SCRIBBLE_ON_FAIL");
	sim_rules_read(getenv("CUWEIR_SIM_FAIL"));
	sim_trace_open(getenv("CUWEIR_SIM_TRACE"));
	sim_devices_setup();
	watched = sim_n_rules > 0 || sim_set.latency > 0 || sim_set.strict;
	atomic_store(&sim_traced, sim_set.trace_fd >= 0);
}

void sim_settings_ready(void)
{
	pthread_once(&once, read_settings);
}

/* cuInit succeeded: from here a call is short unless something is to be watched. */
void sim_settings_inited(void)
{
	atomic_store(&inited, true);
	atomic_store_explicit(&sim_slow, watched, memory_order_release);
}

bool sim_settings_is_forked(void)
{
	return forked;
}

bool sim_settings_is_inited(void)
{
	return atomic_load(&inited);
}
