/* SPDX-License-Identifier: Apache-2.0 */
/* The file of limit:shared=: where it lies, when it is begun anew, and who in it still lives. */
#include "test_main.h"

#include "test_limit_start.h"

#include <errno.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

enum { ADMITTED, REFUSED, NOT_OPEN, NOT_HERE = 77 };

static void *open_limit(struct fake_host *fake, const char *arguments)
{
	fake_host_init(fake);
	fake->budget_status = CUWEIR_SUCCESS;
	return fake_open(fake, policy, arguments);
}

/* Nothing of cmocka's: this is for children. */
static int take(struct fake_host *fake, void **ret_limit)
{
	struct cuweir_event event = fake_event(600, 0, 0);
	fake_host_init(fake);
	fake->budget_status = CUWEIR_SUCCESS;
	if (policy->open(&fake->host, "1000,shared=file", ret_limit) != CUWEIR_SUCCESS) {
		return NOT_OPEN;
	}
	return policy->admit(*ret_limit, &event) == CUWEIR_SUCCESS ? ADMITTED : REFUSED;
}

/* A process that has 600 and stands still. */
static pid_t start_holder(void)
{
	struct fake_host fake;
	void *limit = NULL;
	int status;
	pid_t child = fork();
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(take(&fake, &limit) == ADMITTED ? raise(SIGSTOP) : 1);
	}
	waitpid(child, &status, WUNTRACED);
	assert_true(WIFSTOPPED(status));
	return child;
}

static void end_holder(pid_t child)
{
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

/* What a process that wants 600 gets, after `prepare`. */
static int ask_after(int (*prepare)(void))
{
	struct fake_host fake;
	void *limit = NULL;
	int status;
	pid_t child = fork();
	if (child == 0) {
		int prepared = prepare != NULL ? prepare() : 0;
		_exit(prepared != 0 ? prepared : take(&fake, &limit));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static struct shared_place *place_of(struct shared_file *file, pid_t pid)
{
	for (uint32_t i = 0; i < file->used; i++) {
		if (file->places[i].life.pid == pid) {
			return &file->places[i];
		}
	}
	return NULL;
}

static int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t written = fd >= 0 ? write(fd, text, strlen(text)) : -1;
	close(fd);
	return written == (ssize_t)strlen(text) ? 0 : -1;
}

/* By root, else as root of a namespace of users. */
static bool unshare_as(int flags)
{
	char map[40];
	snprintf(map, sizeof(map), "%u %u 1", geteuid(), geteuid());
	return unshare(flags) == 0 ||
	       (unshare(flags | CLONE_NEWUSER) == 0 && write_file("/proc/self/uid_map", map) == 0);
}

static int hide_proc(void)
{
	if (!unshare_as(CLONE_NEWNS)) {
		return NOT_HERE;
	}
	mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL);
	return mount("none", "/proc", "tmpfs", 0, "") == 0 ? 0 : NOT_HERE;
}

static int leave_descriptors(unsigned int count)
{
	int next = dup(0);
	for (int fd = next; fd < 256; fd++) {
		close(fd);
	}
	struct rlimit limit;
	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = (rlim_t)next + count;
	return setrlimit(RLIMIT_NOFILE, &limit);
}

static int leave_two(void)
{
	return leave_descriptors(2);
}

/* ---- where it lies ------------------------------------------------------------------------ */

/* Nobody else's files, and no links. */
static void test_file(void **state)
{
	char path[200];
	char target[200];
	struct stat status;
	struct fake_host fake;
	open_limit(&fake, "1000,shared=mode");
	snprintf(path, sizeof(path), "%s", path_of("mode"));
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_mode & 07777, 0600);
	snprintf(target, sizeof(target), "%s", path_of("link"));
	assert_int_equal(symlink(path, target), 0);
	assert_non_null(strstr(fake_open_refused(&fake, policy, "1000,shared=link"),
			       "cuweir-limit-link: Too many levels of symbolic links; want a "
			       "directory and a file of this user's"));
	assert_int_equal(unlink(target), 0);
	assert_int_equal(link(path, target), 0);
	assert_non_null(strstr(fake_open_refused(&fake, policy, "1000,shared=link"),
			       "Operation not permitted"));
	assert_int_equal(unlink(target), 0);
	assert_int_equal(chmod(path, 0620), 0);
	assert_non_null(strstr(fake_open_refused(&fake, policy, "1000,shared=mode"),
			       "Operation not permitted"));
	FILE *file = fopen(target, "w");
	fputs("something else", file);
	fclose(file);
	assert_int_equal(chmod(target, 0600), 0);
	assert_non_null(strstr(fake_open_refused(&fake, policy, "1000,shared=link"),
			       "of another version, or damaged; want it removed"));
	/* A directory that others may write to is not used, which is told. */
	assert_int_equal(chmod(directory, 0770), 0);
	open_limit(&fake, "1000,shared=elsewhere");
	assert_int_equal(access(path_of("elsewhere"), F_OK), -1);
	assert_int_equal(fake.line_count, 1);
	assert_non_null(strstr(fake.lines[0], "is not used: Operation not permitted; the file is "
					      "in /"));
	assert_int_equal(chmod(directory, 0700), 0);
	snprintf(path, sizeof(path), "/run/user/%u/cuweir-limit-elsewhere", geteuid());
	snprintf(target, sizeof(target), "/tmp/cuweir-%u/cuweir-limit-elsewhere", geteuid());
	assert_true(unlink(path) == 0 || unlink(target) == 0);
}


/* In a program of its own, since the start is what counts; set_up does what the variable says. */
#define THEN "CUWEIR_TEST_THEN"

static int start_and_clear(void)
{
	setenv(THEN, "clear", 1);
	start_again();
	return NOT_HERE;
}

static int start_and_change(void)
{
	setenv(THEN, "change", 1);
	start_again();
	return NOT_HERE;
}

static int set_up(void **state)
{
	struct fake_host fake;
	void *limit = NULL;
	const char *then = getenv(THEN);
	if (then == NULL) {
		return 0;
	}
	int error = strcmp(then, "clear") == 0 ? clearenv() : setenv("XDG_RUNTIME_DIR", "/", 1);
	_exit(error != 0 ? NOT_HERE : take(&fake, &limit));
}

/* All that were started alike meet, whatever they do to their environment. */
static void test_environment_of_the_start(void **state)
{
	pid_t holder = start_holder();
	assert_int_equal(ask_after(start_and_clear), REFUSED);
	assert_int_equal(ask_after(start_and_change), REFUSED);
	end_holder(holder);
}

/* Another directory is not taken because this process is short of something. */
static void test_no_descriptors(void **state)
{
	for (unsigned int count = 0; count < 3; count++) {
		struct fake_host fake;
		void *limit = NULL;
		int status;
		pid_t child = fork();
		if (child == 0) {
			leave_descriptors(count);
			int got = take(&fake, &limit);
			bool named = strstr(fake.reason, count == 0 ? "$XDG_RUNTIME_DIR/cuweir" :
								      directory) != NULL &&
				     strstr(fake.reason, "Too many open files; want two "
							 "descriptors that are free") != NULL;
			_exit(got == NOT_OPEN && named ? NOT_OPEN : got == ADMITTED ? 0 : 99);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), count < 2 ? NOT_OPEN : ADMITTED);
	}
}

/* ---- when it is begun anew ---------------------------------------------------------------- */

static void test_boot(void **state)
{
	char boot[40] = { 0 };
	pid_t holder = start_holder();
	struct shared_file *file = map_file("file");
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	assert_int_equal(read(fd, boot, 36), 36);
	close(fd);
	assert_memory_equal(file->boot, boot, sizeof(boot));
	/* Not known to who began it: filled in. */
	memset(file->boot, 0, sizeof(file->boot));
	assert_int_equal(ask_after(NULL), REFUSED);
	assert_memory_equal(file->boot, boot, sizeof(boot));
	assert_non_null(place_of(file, holder));
	/* Not known to who joins, for want of a third descriptor. */
	assert_int_equal(ask_after(leave_two), REFUSED);
	assert_int_equal(ask_after(NULL), REFUSED);
	/* Another boot's. */
	file->boot[0] = '?';
	assert_int_equal(ask_after(NULL), ADMITTED);
	assert_null(place_of(file, holder));
	assert_memory_equal(file->boot, boot, sizeof(boot));
	end_holder(holder);
	munmap(file, sizeof(*file));
}

/* Of the layout before this one. */
static void test_older_file(void **state)
{
	pid_t holder = start_holder();
	struct shared_file *file = map_file("file");
	file->magic[7] = '1';
	assert_int_equal(ask_after(NULL), NOT_OPEN);
	file->magic[7] = '2';
	assert_int_equal(ask_after(NULL), REFUSED);
	end_holder(holder);
	munmap(file, sizeof(*file));
}

/* ---- who lives ---------------------------------------------------------------------------- */

/* Without /proc one joins, counts for all, and others count for it. */
static void test_without_proc(void **state)
{
	struct fake_host fake;
	void *limit = NULL;
	int status;
	pid_t holder = start_holder();
	int got = ask_after(hide_proc);
	if (got == NOT_HERE) {
		end_holder(holder);
		skip();
	}
	assert_int_equal(got, REFUSED);
	assert_int_equal(ask_after(NULL), REFUSED);
	/* Two that know no namespace are not in the same one: nothing says that this is dead. */
	struct shared_file *file = map_file("file");
	struct shared_place *place = place_of(file, holder);
	assert_non_null(place);
	end_holder(holder);
	place->life = (struct life){ .pid = holder };
	assert_int_equal(ask_after(hide_proc), REFUSED);
	place->life.pid = 0;
	/* At its exit it takes away what nobody would. */
	pid_t child = fork();
	if (child == 0) {
		hide_proc();
		got = take(&fake, &limit);
		policy->close(limit);
		_exit(got);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(WEXITSTATUS(status), ADMITTED);
	assert_int_equal(ask_after(NULL), ADMITTED);
	munmap(file, sizeof(*file));
}

/* In another namespace of time the same process has another start. */
static void test_time_namespace(void **state)
{
	pid_t holder = start_holder();
	struct shared_file *file = map_file("file");
	struct shared_place *place = place_of(file, holder);
	assert_non_null(place);
	uint64_t namespace = place->life.time_namespace;
	assert_int_not_equal(namespace, 0);
	place->life.start += 1000;
	place->life.time_namespace = namespace + 1;
	assert_int_equal(ask_after(NULL), REFUSED);
	place->life.time_namespace = 0;
	assert_int_equal(ask_after(NULL), REFUSED);
	/* In the same one it is another process, whose number came again. */
	place->life.time_namespace = namespace;
	assert_int_equal(ask_after(NULL), ADMITTED);
	end_holder(holder);
	holder = start_holder();
	place = place_of(file, holder);
	assert_non_null(place);
	place->life.time_namespace = namespace + 1;
	end_holder(holder);
	assert_int_equal(ask_after(NULL), ADMITTED);
	munmap(file, sizeof(*file));
}

/* The first process of a namespace: the next one has a given number, and takes 600. */
static int ask_beside(pid_t number)
{
	struct fake_host fake;
	void *limit = NULL;
	char text[24];
	char byte;
	int ends[2];
	snprintf(text, sizeof(text), "%d", (int)number - 1);
	if (write_file("/proc/sys/kernel/ns_last_pid", text) != 0 || pipe(ends) != 0) {
		return NOT_HERE;
	}
	pid_t holder = fork();
	if (holder == 0) {
		close(ends[0]);
		if (take(&fake, &limit) == ADMITTED && write(ends[1], "", 1) == 1) {
			pause();
		}
		_exit(1);
	}
	close(ends[1]);
	if (holder != number || read(ends[0], &byte, 1) != 1) {
		return NOT_HERE;
	}
	return take(&fake, &limit);
}

static int unshare_pids(void)
{
	siginfo_t info;
	int status;
	pid_t zombie = fork();
	if (zombie == 0) {
		_exit(0);
	}
	waitid(P_PID, (id_t)zombie, &info, WEXITED | WNOWAIT);
	if (!unshare_as(CLONE_NEWPID)) {
		return NOT_HERE;
	}
	pid_t first = fork();
	if (first == 0) {
		_exit(ask_beside(zombie)); /* the other one ends with it */
	}
	waitpid(first, &status, 0);
	_exit(WEXITSTATUS(status));
}

/* /proc of the namespace around: the number of one that lives is a dead one's there. */
static void test_proc_of_another_namespace(void **state)
{
	unlink(path_of("file")); /* what is left in it of others cannot be seen from there */
	int got = ask_after(unshare_pids);
	unlink(path_of("file"));
	if (got == NOT_HERE) {
		skip();
	}
	assert_int_equal(got, REFUSED);
}

static int tear_down(void **state)
{
	static const char *const names[] = { "file", "mode", "link" };
	return remove_files(names, sizeof(names) / sizeof(names[0]));
}

TEST_MAIN_WITH(set_up, tear_down,
	cmocka_unit_test(test_file),
	cmocka_unit_test(test_environment_of_the_start),
	cmocka_unit_test(test_no_descriptors),
	cmocka_unit_test(test_boot),
	cmocka_unit_test(test_older_file),
	cmocka_unit_test(test_without_proc),
	cmocka_unit_test(test_time_namespace),
	cmocka_unit_test(test_proc_of_another_namespace));
