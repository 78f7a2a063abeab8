/* SPDX-License-Identifier: Apache-2.0 */
#include "options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct option long_options[] = {
#define OPTION(name, letter, argument, variable, text) { name, argument, NULL, letter },
#include "options.def"
#undef OPTION
	{ NULL, 0, NULL, 0 },
};

/* "+": options end at the program; ":": what is wrong is said here. */
static const char short_options[] = "+:p:l:do:r::s:vqh";

enum { SIM_DEVICES = 16 };

/* As the simulated GPU reads it: 24GiB, 512M, 1000. */
static bool is_size(const char *text)
{
	const char *at = text + strspn(text, "0123456789");

	if (at == text) {
		return false;
	}
	if (*at != '\0' && strchr("KMGTkmgt", *at) != NULL) {
		at++;
		at += *at == 'i';
	}
	at += *at == 'B' || *at == 'b';
	return *at == '\0';
}

static bool is_sim(const char *text)
{
	char size[64];
	size_t length = strcspn(text, ":");
	const char *devices = text[length] == ':' ? text + length + 1 : "1";

	snprintf(size, sizeof(size), "%.*s", (int)length, text);
	return is_size(size) && *devices != '\0' &&
	       strspn(devices, "0123456789") == strlen(devices) && atoi(devices) > 0 &&
	       atoi(devices) <= SIM_DEVICES;
}

/*
 * The program may go elsewhere before it opens its policies: paths are made absolute, unless
 * the directory's own name has what ends a path there.
 */
static void put_directory(char directory[PATH_SIZE], const char *path, const char *marks)
{
	directory[0] = '\0';
	if (path[0] == '/' || getcwd(directory, PATH_SIZE - 1) == NULL ||
	    strpbrk(directory, marks) != NULL) {
		directory[0] = '\0';
		return;
	}
	strcat(directory, "/");
}

static void set_log(struct options *options, const char *path)
{
	char directory[PATH_SIZE];

	put_directory(directory, path, "%");
	if (strlen(directory) + strlen(path) >= sizeof(options->log)) {
		refuse("--log: the name is too long");
	}
	strcpy(options->log, directory);
	strcat(options->log, path);
}

static void add_policy(struct options *options, const char *element)
{
	size_t length = strlen(options->chain);
	size_t name_length = strcspn(element, ":");
	char directory[PATH_SIZE] = "";

	if (memchr(element, '/', name_length) != NULL) {
		put_directory(directory, element, ":;");
	}
	if (length + strlen(directory) + strlen(element) + 2 > sizeof(options->chain)) {
		refuse("--policy: the chain is too long");
	}
	snprintf(options->chain + length, sizeof(options->chain) - length, "%s%s%s",
		 length > 0 ? ";" : "", directory, element);
}

/* A chain that the environment names stays, unless there is another; the limit is innermost. */
static void start_chain(struct options *options)
{
	const char *there = getenv("CUWEIR_POLICY");
	char element[512];

	if (options->chain[0] == '\0' && there != NULL) {
		snprintf(options->chain, sizeof(options->chain), "%s", there);
		if (strlen(there) >= sizeof(options->chain)) {
			refuse("CUWEIR_POLICY: the chain is too long");
		}
	}
	if (options->limit != NULL) {
		if (strlen(options->limit) > sizeof(element) / 2) {
			refuse("--limit: too long");
		}
		if (strchr(options->limit, ';') != NULL) {
			refuse("--limit %s: want no ';' in it; -p adds another policy",
			       options->limit);
		}
		snprintf(element, sizeof(element), "limit:%s", options->limit);
		add_policy(options, element);
	}
}

static int number(const char *name, const char *text, int least, int most)
{
	char *end;
	long value = strtol(text, &end, 10);

	if (*text == '\0' || *end != '\0' || value < least || value > most) {
		refuse("--%s %s: want a whole number from %d to %d", name, text, least, most);
	}
	return (int)value;
}

/* Programs are known by their file names. */
static const char *check_programs(const char *name, const char *text)
{
	if (*text == '\0' || strchr(text, '/') != NULL) {
		refuse("--%s %s: want file names of programs without a /, separated by commas: "
		       "python3*,train", name, text);
	}
	return text;
}

static void read_long(struct options *options, const char *name)
{
	if (strcmp(name, "only") == 0) {
		options->only = check_programs(name, optarg);
	} else if (strcmp(name, "skip") == 0) {
		options->skip = check_programs(name, optarg);
	} else if (strcmp(name, "stack") == 0) {
		options->stack = optarg != NULL ? optarg : "16";
		number(name, options->stack, 0, 32);
	} else if (strcmp(name, "no-follow") == 0) {
		options->no_follow = true;
	} else if (strcmp(name, "strict") == 0) {
		options->strict = true;
	} else if (strcmp(name, "max-retries") == 0) {
		number(name, optarg, 0, 1 << 30);
		options->max_retries = optarg;
	} else if (strcmp(name, "error-exitcode") == 0) {
		options->error_exitcode = number(name, optarg, 0, 255);
	} else {
		options->print_env = true;
	}
}

static void read_report(struct options *options)
{
	options->report = optarg == NULL ? "text" : optarg[0] == '=' ? optarg + 1 : optarg;
	if (strcmp(options->report, "text") != 0 && strcmp(options->report, "json") != 0) {
		refuse("--report=%s: want text or json", optarg);
	}
}

/* False: help. */
static bool read_one(struct options *options, int letter, const char *long_name, const char *word)
{
	switch (letter) {
	case 'p':
		if (*optarg == '\0') {
			refuse("--policy: want NAME or NAME:ARGUMENTS (cuweir policies)");
		}
		add_policy(options, optarg);
		break;
	case 'l':
		if (*optarg == '\0') {
			refuse("--limit: want a size: 8GiB");
		}
		options->limit = optarg;
		break;
	case 'd':
		options->debug = true;
		break;
	case 'o':
		if (*optarg == '\0') {
			refuse("--log: want a file");
		}
		set_log(options, optarg);
		break;
	case 'r':
		read_report(options);
		break;
	case 's':
		if (!is_sim(optarg)) {
			refuse("--sim %s: want a size and perhaps a number of devices up to %d: "
			       "24GiB:2", optarg, SIM_DEVICES);
		}
		options->sim = optarg;
		break;
	case 'v':
		options->verbose += options->verbose < 3;
		break;
	case 'q':
		options->verbose = 0;
		break;
	case 'h':
		return false;
	case 0:
		read_long(options, long_name);
		break;
	case ':':
		refuse("%s: want a value after it (cuweir run --help)", word);
	default:
		refuse("%s is not an option of cuweir run (cuweir run --help)", word);
	}
	return true;
}

bool read_options(struct options *ret, int argc, char **argv)
{
	int index = 0;
	int letter;

	memset(ret, 0, sizeof(*ret));
	ret->verbose = 1;
	optind = 1;
	opterr = 0;
	while ((letter = getopt_long(argc, argv, short_options, long_options, &index)) != -1) {
		if (!read_one(ret, letter, long_options[index].name, argv[optind - 1])) {
			return false;
		}
	}
	if (ret->only != NULL && ret->skip != NULL) {
		refuse("--only and --skip are both given; want one of them");
	}
	if (ret->print_env && ret->error_exitcode != 0) {
		refuse("--error-exitcode and --print-env are both given; want one of them: the status "
		       "is that of cuweir run itself");
	}
	start_chain(ret);
	return true;
}
