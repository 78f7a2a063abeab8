/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs an unmodified program under the shim and holds what the policies heard, what the program
 * printed and what the simulated GPU knows against what a row of the case tables says. Each
 * case is one process of its own, for each way into CUDA.
 */
#ifndef HARNESS_H
#define HARNESS_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>

/* What one run may take. TSan makes what is short long, most of all a fork. */
#ifdef __SANITIZE_THREAD__
enum { RUN_SECONDS = 200 };
#else
enum { RUN_SECONDS = 60 };
#endif

/* Ways into CUDA, as bits. */
enum {
	LINKED = 1 << 0,  /* linked to libcuda */
	DLSYM = 1 << 1,
	GPA = 1 << 2,     /* cuGetProcAddress_v2 */
	GPA1 = 1 << 3,    /* cuGetProcAddress, the first version */
	SHARED = 1 << 4,  /* the shared runtime */
	STATIC = 1 << 5,  /* the static one */
	FOREIGN = 1 << 6, /* a runtime whose look-ups pass no door */
	DRIVER_WAYS = LINKED | DLSYM | GPA | GPA1,
	RUNTIME_WAYS = SHARED | STATIC | FOREIGN,
	ALL_WAYS = DRIVER_WAYS | RUNTIME_WAYS,
	HEARD_WAYS = DRIVER_WAYS | SHARED | STATIC,
};

enum { CHAIN_MAX = 4, ENVIRONMENT_MAX = 8 };

struct run {
	const char *row;       /* for the message when it fails */
	int ways;              /* 0: ALL_WAYS */
	/* A name in tests/plugins. NULL: recorder, and recorder_minimal where that will do. */
	const char *plugin;
	/* Arguments of a chain of recorders, outermost first; each gets a file of its own. */
	const char *policies[CHAIN_MAX];
	const char *environment[ENVIRONMENT_MAX]; /* "NAME=value" */
	/* In tests/apps, without what it is called for the way. NULL: scenario. */
	const char *program;
	const char *script;    /* its argument */
	const char *preload;   /* a thing that the build made, to come before the shim */
	bool bare;             /* without the shim, to compare with */
	int exit_status;
	/*
	 * Which callbacks of the recorder are compared, by name with spaces between; "" none.
	 * NULL: thresholds, failures and debug events.
	 */
	const char *shown;
	/*
	 * What each of the chain must have written: a line for a line; every word of the
	 * expected line must be a word of the written one.
	 */
	const char *events[CHAIN_MAX];
	const char *out;       /* the program's whole output; NULL: not compared */
	const char *err[4];    /* each must be somewhere in stderr */
	bool quiet;            /* stderr must be empty */
	/* The books are not closed at the end of this one, or need not agree with the GPU. */
	bool unaudited;
};

void run(const struct run *run);

/* Runs all of an array. */
#define RUN_ALL(runs)                                                                              \
	do {                                                                                       \
		for (size_t run_i = 0; run_i < sizeof(runs) / sizeof((runs)[0]); run_i++) {        \
			run(&(runs)[run_i]);                                                       \
		}                                                                                  \
	} while (0)

/* For cases that need more: the same process, its results to look at. */
struct result {
	int exit_status;       /* 128 + signal where it was killed */
	char out[1 << 16];
	char err[1 << 16];
	char events[CHAIN_MAX][1 << 17];
	char audit[1 << 13];
};

void run_once(const struct run *run, int way, struct result *ret);

/* The path of a thing that the build made: "shim", "plugins/recorder.so", ... */
const char *built(const char *what);

#endif
