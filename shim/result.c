/* SPDX-License-Identifier: Apache-2.0 */
#include "result.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "config.h"
#include "ledger.h"
#include "message.h"
#include "plain.h"

static struct cw_result_file *file;
static struct cw_result_slot *own; /* NULL in a child of fork that has told nothing yet */
static uint64_t namespace_at_load;

/* 0, or the error. */
static int map(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	void *memory = MAP_FAILED;

	if (fd < 0) {
		return errno;
	}
	if (lseek(fd, 0, SEEK_END) == (off_t)sizeof(struct cw_result_file)) {
		memory = mmap(NULL, sizeof(struct cw_result_file), PROT_READ | PROT_WRITE,
			      MAP_SHARED, fd, 0);
	}
	close(fd);
	if (memory == MAP_FAILED) {
		return EINVAL;
	}
	file = memory;
	return 0;
}

/* As it is now, or was: /proc may have gone since. */
static uint64_t own_namespace(void)
{
	uint64_t now = cw_result_namespace();

	return now != 0 ? now : namespace_at_load;
}

/* Whether the one who made the file has ended; its process and namespace are in the name. */
static bool maker_has_gone(const char *path)
{
	const char *at = strrchr(path, '/');
	uint64_t pid;

	if (at == NULL || strncmp(at, CW_RESULT_NAME, sizeof(CW_RESULT_NAME) - 1) != 0) {
		return false;
	}
	at += sizeof(CW_RESULT_NAME) - 1;
	pid = proc_number(at);
	at += strcspn(at, "-");
	return proc_number(at + (*at != '\0')) == own_namespace() &&
	       syscall(SYS_kill, (pid_t)pid, 0) != 0 && errno == ESRCH;
}

/*
 * Before the program goes where the file cannot be seen. An exception: a process that never
 * touches CUDA opens a file of ours, under --error-exitcode alone. What is wrong is told later.
 */
__attribute__((constructor)) static void on_load(void)
{
	cw_config_load();
	if (cw_config.result != NULL && !cw_config.disabled && file == NULL) {
		namespace_at_load = own_namespace();
		(void)map(cw_config.result);
	}
}

static uint64_t own_start(void)
{
	struct proc_stat line;

	return proc_stat_read("/proc/self/stat", &line) ? line.start : 0;
}

static struct cw_result_slot *take_slot(void)
{
	uint64_t place = __atomic_fetch_add(&file->taken, 1, __ATOMIC_RELAXED);
	struct cw_result_slot *slot;

	if (place >= CW_RESULT_SLOTS) {
		return NULL;
	}
	slot = &file->slots[place];
	slot->started = own_start();
	slot->pid_namespace = own_namespace();
	__atomic_store_n(&slot->pid, (uint32_t)getpid(), __ATOMIC_RELEASE);
	return slot;
}

/*
 * NULL where there is none: in a child that no fork handler of ours has heard of, too, whose
 * books are its parent's.
 */
static struct cw_result_slot *slot_now(void)
{
	struct cw_result_slot *slot = __atomic_load_n(&own, __ATOMIC_ACQUIRE);
	struct cw_result_slot *none = NULL;

	if (file != NULL && slot == NULL) {
		/* Of two threads one has taken a slot in vain, which says nothing. */
		slot = take_slot();
		if (slot != NULL && !__atomic_compare_exchange_n(&own, &none, slot, false,
								 __ATOMIC_ACQ_REL,
								 __ATOMIC_ACQUIRE)) {
			slot = none;
		}
	}
	return slot != NULL && slot->pid == (uint32_t)getpid() ? slot : NULL;
}

/* Of two threads, the one that writes last finds a number older than its own and writes again. */
static void show_live(void)
{
	int saved_errno = errno;
	struct cw_result_slot *slot = slot_now();
	uint64_t live = cw_ledger_live();
	uint64_t shown;

	errno = saved_errno;
	if (slot == NULL) {
		return;
	}
	do {
		shown = live;
		__atomic_store_n(&slot->live, shown, __ATOMIC_SEQ_CST);
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		live = cw_ledger_live();
	} while (live != shown);
}

void cw_result_open(const char *path)
{
	int error = file == NULL ? map(path) : 0;

	if (error != 0) {
		/* Who comes after the end of cuweir run finds none. */
		if (error != ENOENT || !maker_has_gone(path)) {
			cw_message(CW_ERROR,
				   "CUWEIR_RESULT=\"%s\": it cannot be used (error %d); want the "
				   "file that cuweir run --error-exitcode has made; this process "
				   "does not count",
				   path, error);
		}
		return;
	}
	own = file != NULL ? take_slot() : NULL;
	if (own != NULL) {
		cw_plain_set(CW_PLAIN_RESULT);
		cw_ledger_watch(show_live);
	}
}

void cw_result_refused(void)
{
	struct cw_result_slot *slot = slot_now();

	if (slot != NULL) {
		__atomic_fetch_add(&slot->refused, 1, __ATOMIC_RELAXED);
	}
}

void cw_result_lost(void)
{
	struct cw_result_slot *slot = slot_now();

	if (slot != NULL) {
		__atomic_store_n(&slot->lost, 1, __ATOMIC_RELAXED);
	}
}

void cw_result_postfork_child(void)
{
	own = NULL;
}
