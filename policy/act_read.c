/* SPDX-License-Identifier: Apache-2.0 */
#include "act.h"
#include "old_glibc.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char *read_signal(struct args_text value, struct act *act)
{
	static const struct {
		const char *name;
		int number;
	} names[] = {
		{ "HUP", SIGHUP },   { "INT", SIGINT },   { "QUIT", SIGQUIT }, { "ABRT", SIGABRT },
		{ "KILL", SIGKILL }, { "USR1", SIGUSR1 }, { "USR2", SIGUSR2 }, { "ALRM", SIGALRM },
		{ "TERM", SIGTERM }, { "CONT", SIGCONT }, { "STOP", SIGSTOP }, { "TSTP", SIGTSTP },
		{ "PWR", SIGPWR },   { "WINCH", SIGWINCH },
	};
	static const char want[] = "signal=NAME or signal=NAME:PID: USR1, USR2, TERM, ..., or a "
				   "number from 1 to 64";
	struct args_text name = { NULL, 0 };
	uint64_t number = 0;
	uint64_t pid = 0;
	if (!args_cut(&value, ':', &name) ||
	    (value.start != NULL && (!args_number(value, &pid) || pid == 0 || pid > INT32_MAX))) {
		return want;
	}
	if (name.length > 3 && memcmp(name.start, "SIG", 3) == 0) {
		name.start += 3;
		name.length -= 3;
	}
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (args_is(name, names[i].name)) {
			number = (uint64_t)names[i].number;
		}
	}
	if (number == 0 && (!args_number(name, &number) || number == 0 || number > 64)) {
		return want;
	}
	act->signal = (int)number;
	act->signal_pid = (pid_t)pid;
	return NULL;
}

static const char *read_when(const struct args_pair *pair, struct act *act)
{
	uint64_t number = 0;
	if (args_is(pair->key, "total")) {
		bool good = args_share(pair->value, &act->total, &act->total_percent) &&
			    (act->total != 0 || act->total_percent != 0);
		return good ? NULL : "total=SIZE or total=PERCENT%: total=8GiB, total=80%";
	}
	if (args_is(pair->key, "free")) {
		act->has_free = true;
		bool good = args_share(pair->value, &act->free, &act->free_percent) &&
			    (act->free != 0 || act->free_percent != 0);
		return good ? NULL : "free=SIZE or free=PERCENT%: free=1GiB, free=10%";
	}
	if (args_is(pair->key, "oom")) {
		return args_flag(pair->value, &act->oom) ? NULL : "oom=0 or oom=1";
	}
	if (args_is(pair->key, "hysteresis")) {
		return args_share(pair->value, &act->hysteresis, &act->hysteresis_percent) ?
			       NULL :
			       "hysteresis=SIZE or hysteresis=PERCENT%: hysteresis=5%";
	}
	if (args_is(pair->key, "period")) {
		return args_time(pair->value, &act->period_ns) ?
			       NULL :
			       "period=TIME with a unit (ns, us, ms, s, m): period=100ms";
	}
	if (args_is(pair->key, "device")) {
		bool good = args_number(pair->value, &number) && number < ACT_DEVICES;
		act->device = (int)number;
		return good ? NULL : "device=N, CUDA's number, below 64";
	}
	if (args_is(pair->key, "kinds")) {
		return args_kinds(pair->value, &act->kinds) ?
			       NULL :
			       "kinds=all, or names joined by '+': device, managed, host, "
			       "registered, imported, virtual, pool, graph_planned";
	}
	return "";
}

/* Of what the arguments want nothing is wrong then. */
static const char no_memory[] = "no memory for its state";

static const char *keep(char **target, const char *text)
{
	free(*target);
	*target = strdup(text);
	return *target != NULL ? NULL : no_memory;
}

static const char *read_deed(const struct args_pair *pair, struct act *act)
{
	if (args_is(pair->key, "file")) {
		char path[PATH_MAX];
		bool good = pair->value.start != NULL && pair->value.length > 0 &&
			    args_path(act->host, pair->value, path, sizeof(path));
		return good ? keep(&act->file, path) : "file=NAME";
	}
	if (args_is(pair->key, "signal")) {
		return read_signal(pair->value, act);
	}
	if (args_is(pair->key, "debug")) {
		return args_flag(pair->value, &act->debug) ? NULL : "debug=0 or debug=1";
	}
	if (args_is(pair->key, "run")) {
		/* The rest of the text, commas included. */
		bool good = pair->value.start != NULL && *pair->value.start != '\0';
		return good ? keep(&act->command, pair->value.start) :
			      "run=COMMAND, as the last argument";
	}
	return "total=, free=, oom=, device=, kinds=, hysteresis=, period=, file=, signal=, "
	       "debug= or run=";
}

/* Nothing is made here: the file is, or the directory that it will be in, can be written to. */
static int check_file(const struct act *act)
{
	char directory[PATH_MAX];
	char reason[PATH_MAX + 200];
	char text[80];
	struct stat status;
	if (old_stat(act->file, &status) == 0 && S_ISDIR(status.st_mode)) {
		errno = EISDIR;
	} else if (access(act->file, W_OK) == 0) {
		return CUWEIR_SUCCESS;
	}
	snprintf(directory, sizeof(directory), "%s", act->file);
	char *slash = strrchr(directory, '/');
	if (slash == NULL) {
		snprintf(directory, sizeof(directory), ".");
	} else {
		slash[slash == directory] = '\0';
	}
	if (errno == ENOENT && access(directory, W_OK | X_OK) == 0) {
		return CUWEIR_SUCCESS;
	}
	snprintf(reason, sizeof(reason),
		 "file=%s: %s; want a file that can be written, in a directory that exists", act->file,
		 strerror_r(errno, text, sizeof(text)));
	return act->host->refuse(act->host, reason);
}

int act_read(struct act *act, const struct cuweir_host *host, const char *arguments)
{
	struct args_text rest = args_begin(arguments);
	struct args_pair pair = { 0 };
	act->host = host;
	act->device = -1;
	act->kinds = CUWEIR_KIND_BIT(CUWEIR_KIND_DEVICE);
	act->hysteresis_percent = 5;
	act->period_ns = 100000000;
	while (act->command == NULL && args_next(&rest, &pair)) {
		const char *want = read_when(&pair, act);
		if (want != NULL && *want == '\0') {
			want = read_deed(&pair, act);
		}
		if (want != NULL) {
			return want == no_memory ? host->refuse(host, want) :
						   args_refuse(host, &pair, want);
		}
	}
	if (act->total == 0 && act->total_percent == 0 && !act->has_free && !act->oom) {
		return host->refuse(host, "nothing to wait for: want total=, free= or oom=1");
	}
	if (act->file == NULL && act->signal == 0 && !act->debug && act->command == NULL) {
		return host->refuse(host,
				    "nothing to do: want file=, run=, signal= or debug=1 with it");
	}
	return act->file != NULL ? check_file(act) : CUWEIR_SUCCESS;
}
