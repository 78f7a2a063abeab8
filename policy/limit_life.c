/* SPDX-License-Identifier: Apache-2.0 */
#include "limit_life.h"

#include "../shim/proc_stat.h"
#include "old_glibc.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Of kernels that have none of time (before 5.6). No inode: those of namespaces are large. */
#define NO_TIME_NAMESPACES 1

/* 0: there is none, or it cannot be known. */
static uint64_t inode_of(const char *path)
{
	struct stat status;
	return old_stat(path, &status) == 0 ? (uint64_t)status.st_ino : 0;
}

void life_of_self(struct life *ret_life)
{
	struct proc_stat line;
	*ret_life = (struct life){
		.pid = (int32_t)getpid(),
		.namespace = inode_of("/proc/self/ns/pid"),
		.time_namespace = inode_of("/proc/self/ns/time"),
	};
	if (ret_life->time_namespace == 0 && ret_life->namespace != 0 && errno == ENOENT) {
		ret_life->time_namespace = NO_TIME_NAMESPACES;
	}
	/* /proc/self is this process whatever the namespace of /proc is. */
	if (proc_stat_read("/proc/self/stat", &line)) {
		ret_life->start = line.start;
	}
}

bool life_can_use_proc(void)
{
	char seen[24];
	char own[24];
	ssize_t length = readlink("/proc/self", seen, sizeof(seen));
	int wanted = snprintf(own, sizeof(own), "%d", (int)getpid());
	return length == wanted && memcmp(seen, own, (size_t)length) == 0;
}

/*
 * Where nothing can be known, as of another namespace of process ids, it counts as living: too
 * little for others is better than too much for all. A zombie has given its memory back already,
 * unless only its first thread has ended.
 */
bool life_goes_on(const struct life *self, const struct life *other, bool can_use_proc)
{
	char path[40];
	struct proc_stat line;
	if (self->namespace == 0 || other->namespace != self->namespace) {
		return true;
	}
	snprintf(path, sizeof(path), "/proc/%d/stat", other->pid);
	if (!can_use_proc || !proc_stat_read(path, &line)) {
		/* The program may be out of descriptors, or see no /proc. */
		return kill(other->pid, 0) == 0 || errno != ESRCH;
	}
	if ((line.state == 'Z' || line.state == 'X') && line.threads <= 1) {
		return false;
	}
	/* Each namespace of time has the starts moved by what is its own. */
	if (other->start == 0 || other->time_namespace == 0 ||
	    other->time_namespace != self->time_namespace) {
		return true;
	}
	return other->start == line.start;
}
