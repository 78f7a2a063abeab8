/* SPDX-License-Identifier: Apache-2.0 */
/* The files of log_sink.c: opened, begun, gone on with after exec, and rotated. */
#ifndef CUWEIR_POLICY_LOG_FILES_H
#define CUWEIR_POLICY_LOG_FILES_H

#include "log_sink.h"

/* Opens the file and its tail into the sink, whose path and options are set. 0 or an errno. */
int log_files_open(struct log_sink *sink);

/* Moves the files on and begins a new one; the descriptor keeps its number. 0 or an errno. */
int log_files_rotate(struct log_sink *sink);

/* The tail is empty: it goes. */
void log_files_close(struct log_sink *sink);

#endif
