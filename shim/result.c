/* SPDX-License-Identifier: Apache-2.0 */
#include "result.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ledger.h"
#include "message.h"
#include "plain.h"

static struct cw_result_file *file;
static struct cw_result_slot *own; /* NULL in a child of fork that has told nothing yet */

static struct cw_result_file *map(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	void *memory = MAP_FAILED;
	int error = errno;

	if (fd >= 0) {
		if (lseek(fd, 0, SEEK_END) == (off_t)sizeof(struct cw_result_file)) {
			memory = mmap(NULL, sizeof(struct cw_result_file), PROT_READ | PROT_WRITE,
				      MAP_SHARED, fd, 0);
		}
		error = EINVAL;
		close(fd);
	}
	/* Who comes after the end of cuweir run finds none. */
	if (memory == MAP_FAILED && error != ENOENT) {
		cw_message(CW_ERROR,
			   "CUWEIR_RESULT=\"%s\": it cannot be used (error %d); want the file that "
			   "cuweir run --error-exitcode has made; this process does not count",
			   path, error);
	}
	return memory != MAP_FAILED ? memory : NULL;
}

/* Field 22 of /proc/self/stat, counted from the name's end, which is the second one's. */
static uint64_t own_start(void)
{
	char text[1024];
	int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
	ssize_t length = fd >= 0 ? read(fd, text, sizeof(text) - 1) : 0;
	const char *at;

	if (fd >= 0) {
		close(fd);
	}
	text[length > 0 ? length : 0] = '\0';
	at = strrchr(text, ')');
	for (int field = 2; at != NULL && field < 22; field++) {
		at = strchr(at + 1, ' ');
	}
	return at != NULL ? cw_result_number(at + 1) : 0;
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
	slot->pid_namespace = cw_result_namespace();
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
	file = map(path);
	if (file == NULL) {
		return;
	}
	own = take_slot();
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
