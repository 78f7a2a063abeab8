/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where rows go: a file of the log's own, or the shim's. Rows are in it whole, each once, those
 * of one thread in the order of its calls. Any thread, children of fork included.
 *
 * Unbuffered, a row is written before the call that it is about goes on. Buffered, rows lie in
 * one of several buffers until it is full; the buffers are a mapped file beside the log,
 * NAME.tail, so that they outlive the process however it ends: what is not in NAME is there.
 */
#ifndef CUWEIR_POLICY_LOG_SINK_H
#define CUWEIR_POLICY_LOG_SINK_H

#include "../shim/own_file.h"

#include <cuweir/policy.h>

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#define LOG_BUFFERS 64
#define LOG_BUFFER_SIZE (16 * 1024)

/* Threads are spread over the buffers, and seldom meet at one. */
struct log_buffer {
	uint32_t lock; /* leaf, only the file is written under it: 1 held, 2 and waited for */
	size_t used;
	char *bytes;
} __attribute__((aligned(64)));

struct log_sink_options {
	bool buffered;
	bool resumable;        /* NAME has the pid in it: after exec it goes on, not anew */
	uint64_t rotate;       /* bytes of a file; 0: no limit */
	unsigned int keep;     /* older files, NAME.1 to NAME.keep */
	const char *header;    /* first line of each file, with its newline; or "" */
};

struct log_sink {
	const struct cuweir_host *host;
	struct log_sink_options options;
	char *path;               /* NULL: host->log */
	struct own_file file;     /* none: host->log */
	pid_t owner;              /* process that opened it, and rotates */
	const pid_t *owner_now;   /* the same, 0 in every child of fork */
	bool is_quiet;            /* a pipe, a write to which could bring a signal */
	atomic_bool failure_told;
	atomic_bool rotation_told;
	size_t room;              /* of a buffer; 0 when closed: nothing stays in it */
	atomic_ullong lost;       /* rows that could not be written */
	pthread_mutex_t rotation; /* guards `written`, and the change of files; leaf */
	unsigned long long written; /* bytes in the file, where files are changed */
	char *tail;               /* the buffers' bytes; NULL: unbuffered */
	bool has_tail_file;
	struct log_buffer buffers[LOG_BUFFERS];
};

/* Creates or empties `path`; NULL for the shim's log. 0, or the errno of the failure. */
int log_sink_open(struct log_sink *sink, const struct cuweir_host *host, const char *path,
		  const struct log_sink_options *options);

/* Writes one row, `length` bytes with its newline, a NUL after it. errno is kept. */
void log_sink_put(struct log_sink *sink, char *row, size_t length);

/* Writes what is buffered; rows that come later are written at once. */
void log_sink_close(struct log_sink *sink);

#endif
