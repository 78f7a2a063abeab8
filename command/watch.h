/* SPDX-License-Identifier: Apache-2.0 */
/* Running the program as a child, where its status may have to be changed. */
#ifndef WATCH_H
#define WATCH_H

/* The status to end with: the program's, or `exitcode` where that is 0 and something was
 * still allocated at its exit, or was refused. */
int watch(char **argv, const char *path, int exitcode);

#endif
