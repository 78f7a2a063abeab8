/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where rows go: a file of the log's own, or the shim's. Rows of all threads are in it in the
 * order of their calls, whole, each once. Any thread, children of fork included.
 */
#ifndef CUWEIR_POLICY_LOG_SINK_H
#define CUWEIR_POLICY_LOG_SINK_H

#include <cuweir/policy.h>

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#define LOG_BLOCK_SIZE (64 * 1024)

struct log_sink {
	const struct cuweir_host *host;
	int fd;                   /* -1: host->log */
	bool buffered;            /* opened with a block */
	pid_t owner;              /* process that the block belongs to */
	atomic_bool failure_told;
	atomic_ullong lost;       /* rows that could not be written */
	pthread_mutex_t lock;     /* guards the two below; leaf, nothing is called under it */
	char *block;              /* NULL: none, or closed */
	size_t used;
};

/* Creates or empties `path`; NULL for the shim's log. 0, or the errno of the failure. */
int log_sink_open(struct log_sink *sink, const struct cuweir_host *host, const char *path,
		  bool block);

/* Writes one row, `length` bytes with its newline, a NUL after it. errno is kept. */
void log_sink_put(struct log_sink *sink, char *row, size_t length);

/* Writes what is buffered; rows that come later are written at once. */
void log_sink_close(struct log_sink *sink);

#endif
