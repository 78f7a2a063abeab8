/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The settings: CUWEIR_* of the environment, copied once when the object is loaded (or by the
 * first hook that is called before that) and never read again. Nothing is said or opened
 * here; what is wrong with a value is told by cw_config_complain, at the opening (D-16).
 */
#ifndef CW_CONFIG_H
#define CW_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

struct cw_config {
	const char *policy;   /* CUWEIR_POLICY, NULL where unset; so are all strings here */
	const char *log;      /* CUWEIR_LOG */
	const char *directory; /* where the process was started, "" where no file is named */
	const char *report;   /* CUWEIR_REPORT, NULL when off */
	int verbose;          /* CUWEIR_VERBOSE, 1 by default */
	int stack;            /* CUWEIR_STACK: frames of a call site, 0 by default */
	int64_t max_retries;  /* CUWEIR_MAX_RETRIES, -1 for no limit */
	bool debug;           /* CUWEIR_DEBUG */
	bool strict;          /* CUWEIR_STRICT */
	const char *result;   /* CUWEIR_RESULT, for cuweir run: result.h */
	bool run;             /* CUWEIR_RUN: started by cuweir run, which promised to be heard */
	bool trial;           /* CUWEIR_TRIAL: cuweir run tries the policies, nothing else runs */
	bool follow;          /* CUWEIR_FOLLOW: children are watched too, true by default */
	bool disabled;        /* CUWEIR_DISABLE, or not chosen by CUWEIR_ONLY/SKIP */
	bool dlsym_off;       /* CUWEIR_HOOKS has -dlsym */
	bool getproc_off;     /* ... -getproc */
	bool runtime_off;     /* ... -runtime */
	bool driver_off;      /* ... -driver */
};

extern struct cw_config cw_config;

/* Reads the environment. Idempotent; any thread, any time after relocation. */
void cw_config_load(void);

/* Takes our preload and our settings out of the environment that children get (children.c). */
void cw_config_leave_children(void);

/* Tells what was wrong with the settings; returns the number of things told. */
int cw_config_complain(void);

#endif
