/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The policy `log`: what is left of buffered rows when the process ends by exit, abort, kill,
 * exec, or goes on in a child of fork.
 */
#include "log_directory.h"

#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* Runs `end` in a child after `rows` rows; its exit status. */
static int die(const char *name, const char *more, int rows, void (*end)(void *log))
{
	int status;
	pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		struct fake_host fake;
		void *log = open_in(&fake, name, more);
		put_rows(log, rows);
		end(log);
		_exit(99);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

static void by_close(void *log)
{
	policy->close(log);
	_exit(0);
}

static void by_abort(void *log)
{
	signal(SIGABRT, SIG_DFL);
	abort();
}

static void by_kill(void *log)
{
	kill(getpid(), SIGKILL);
}

static void by_exec(void *log)
{
	execl("/bin/true", "true", NULL);
}

/* Nothing is lost however it ends: what the file lacks is in the tail. */
static void test_ends(void **state)
{
	static const struct {
		const char *name;
		void (*end)(void *log);
		bool has_tail;
	} ends[] = {
		{ "close", by_close, false },
		{ "abort", by_abort, true },
		{ "kill", by_kill, true },
		{ "exec", by_exec, true },
	};
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		char tail[64];
		snprintf(tail, sizeof(tail), "%s.tail", ends[i].name);
		die(ends[i].name, ",format=csv,flush=block", 5000, ends[i].end);
		size_t rows = rows_in(ends[i].name);
		size_t left = rows_in(tail);
		assert_int_equal(rows + left, 5001);
		assert_int_equal(access(path_of(tail), F_OK) == 0, ends[i].has_tail);
		assert_true(strlen(text_of(tail)) <= 16384);
		/* At once, and so nothing beside it. */
		die(ends[i].name, ",format=csv", 50, ends[i].end);
		assert_int_equal(rows_in(ends[i].name), 51);
	}
}

static const char *how;

static void go_on(void *log)
{
	struct fake_host fake;
	char name[40];
	char tail[48];
	bool is_csv = strstr(how, "csv") != NULL;
	/* As after exec: the same process opens the same name. */
	log = open_in(&fake, "on%p", how);
	put_rows(log, 7);
	policy->close(log);
	snprintf(name, sizeof(name), "on%d", (int)getpid());
	snprintf(tail, sizeof(tail), "%s.tail", name);
	bool good = rows_in(name) == (is_csv ? 108 : 107) && access(path_of(tail), F_OK) != 0 &&
		    (strncmp(text_of(name), "Thread,", 7) == 0) == is_csv;
	_exit(good ? 0 : 1);
}

static void test_goes_on_after_exec(void **state)
{
	static const char *const ways[] = {
		",format=csv",
		",format=csv,flush=block",
		",format=text,flush=block",
		",format=json,flush=block",
	};
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		how = ways[i];
		assert_int_equal(die("on%p", how, 100, go_on), 0);
	}
}

/* When the process began is not known there. 77: nobody lets us take it away. */
static void go_on_without_proc(void *log)
{
	if ((unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) ||
	    mount("none", "/", "none", MS_REC | MS_PRIVATE, "") != 0 ||
	    mount("none", "/proc", "tmpfs", 0, "") != 0) {
		_exit(77);
	}
	go_on(log);
}

static void test_goes_on_without_proc(void **state)
{
	static const char *const ways[] = { ",format=csv", ",format=text,flush=block" };
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		how = ways[i];
		int status = die("on%p", how, 100, go_on_without_proc);
		if (WEXITSTATUS(status) == 77) {
			skip();
		}
		assert_int_equal(status, 0);
	}
}

/* The parent's rows are its own; the child's are written at once, by whatever fork. */
static void check_fork(bool raw)
{
	struct fake_host fake;
	void *log = open_in(&fake, "fork", ",format=csv,flush=block");
	put_rows(log, 3);
	pid_t child = raw ? (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) : fork();
	if (child == 0) {
		put_rows(log, 2);
		_exit(0);
	}
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(rows_in("fork"), 3);
	policy->close(log);
	assert_int_equal(rows_in("fork"), 6);
}

static void test_fork(void **state)
{
	check_fork(false);
	check_fork(true);
}

TEST_MAIN_WITH(set_up, tear_down,
	cmocka_unit_test(test_ends),
	cmocka_unit_test(test_goes_on_after_exec),
	cmocka_unit_test(test_goes_on_without_proc),
	cmocka_unit_test(test_fork));
