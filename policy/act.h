/* SPDX-License-Identifier: Apache-2.0 */
/* What the policy `act` was asked to do, and where each device's memory stands. */
#ifndef CUWEIR_POLICY_ACT_H
#define CUWEIR_POLICY_ACT_H

#include "act_run.h"
#include "args.h"

#include <stdatomic.h>
#include <sys/types.h>

#define ACT_DEVICES 64

struct act_mark {
	uint64_t high; /* of totals; 0: none */
	uint64_t low;  /* armed again below */
	atomic_bool over[CUWEIR_KIND_COUNT];
	atomic_bool low_free;
	atomic_ullong asked_ns; /* when the driver was asked last */
};

struct act {
	const struct cuweir_host *host;
	uint64_t total;
	uint64_t free;
	uint64_t hysteresis;
	uint64_t period_ns;
	unsigned int total_percent; /* where not 0, instead of the bytes */
	unsigned int free_percent;
	unsigned int hysteresis_percent;
	uint32_t kinds;
	int device; /* -1: all */
	bool has_free;
	bool oom;
	bool debug;
	int signal; /* 0: none */
	pid_t signal_pid; /* 0: this process */
	char *file;
	char *command;
	char **environment;
	size_t count; /* of the two below, which are the shim's thresholds */
	uint64_t highs[ACT_DEVICES];
	uint64_t lows[ACT_DEVICES];
	struct act_mark marks[ACT_DEVICES];
	atomic_ullong ran_ns;
	atomic_bool told;
};

/* One occasion, as it is told. */
struct act_case {
	const char *what;
	int device;
	uint64_t mark;
	uint64_t value;
	const struct cuweir_event *event;
};

#define ACT_ARGUMENTS                                                                             \
	"total=SIZE|PERCENT%: when the program's memory of one device and kind reaches this\n"    \
	"free=SIZE|PERCENT%: when a device's free memory falls below this, as the driver says "   \
	"it\n"                                                                                    \
	"oom=0|1 (0): when an allocation has finally failed for want of memory\n"                 \
	"device=N (all), kinds=NAME+NAME (device): only these; free= is of devices alone\n"       \
	"hysteresis=SIZE|PERCENT% (5%): again only after the memory came back by this\n"          \
	"period=TIME (100ms): ask the driver for free= at most so often\n"                        \
	"file=NAME: write a line to this file or FIFO\n"                                          \
	"signal=NAME[:PID]: send USR1, USR2, TERM, a number, ... to this process or to PID\n"     \
	"debug=0|1 (0): switch debug events on\n"                                                 \
	"run=COMMAND: run by /bin/sh with ACT_WHAT, ACT_DEVICE, ACT_VALUE, ... set; must be the " \
	"last, takes the rest, and has no ';' in it"

/* Fills `act`, which is all 0, from the arguments; the status of `open`. */
int act_read(struct act *act, const struct cuweir_host *host, const char *arguments);

#endif
