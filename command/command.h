/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command `cuweir`: what its parts share. It links nothing but libc; it starts in a
 * millisecond, sets variables and becomes the program.
 */
#ifndef COMMAND_H
#define COMMAND_H

#include <stdbool.h>
#include <stddef.h>

/* As env(1) has them. */
enum {
	STATUS_BAD_SETTING = 125,
	STATUS_NOT_EXECUTABLE = 126,
	STATUS_NOT_FOUND = 127,
};

enum { PATH_SIZE = 4096 };

/* "cuweir: " + text + newline, to stderr. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Exits with STATUS_BAD_SETTING after complaining. */
_Noreturn void refuse(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- where things are (places.c): beside the command, installed or in a build tree -------- */

struct places {
	char shim[PATH_SIZE];       /* libcuweir.so */
	char policies[PATH_SIZE];   /* directory of NAME.so */
	char simulation[PATH_SIZE]; /* directory of the simulated libcuda.so.1 and libcudart */
};

/* Fills in what exists; a name that is not there is empty. */
void find_places(struct places *places);

/* The file that a program name means, as the shell finds it. False: there is none. */
bool find_program(const char *name, char path[PATH_SIZE]);

/* ---- what a file on disk is (inspect.c) ----------------------------------------------------- */

enum cudart_form { CUDART_NONE, CUDART_SHARED, CUDART_STATIC };

struct inspection {
	bool readable;
	bool elf;
	bool script;             /* begins with #! */
	bool same_class;         /* of this machine and word size */
	bool dynamic;            /* has an interpreter or is a library, so it can be preloaded */
	bool privileged;         /* setuid, setgid or capabilities: the loader ignores us */
	bool links_driver;       /* NEEDED libcuda.so.1 */
	bool opens_driver;       /* mentions libcuda.so.1 without being linked to it */
	bool deepbind;           /* mentions no preload can reach: dlmopen */
	enum cudart_form cudart;
	char cudart_name[128];   /* "libcudart.so.13" */
	char interpreter[256];   /* of a script */
};

void inspect(const char *path, struct inspection *ret);

/* ---- the subcommands; argv[0] is the subcommand's name --------------------------------------- */

int command_run(int argc, char **argv);
int command_check(int argc, char **argv);
int command_policies(int argc, char **argv);

/* "8GiB", "512M", "80%"...; false where it is not a size. */
bool is_size(const char *text, bool percent_allowed);

/* One policy of a chain, "name[:arguments]": NULL where it can be loaded, else why not. */
const char *check_policy(const struct places *places, const char *element, char *buffer,
			 size_t size);

#endif
