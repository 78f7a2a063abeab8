/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command `cuweir`: what its parts share. It links nothing but libc; it starts in a
 * millisecond, sets variables and becomes the program.
 */
#ifndef COMMAND_H
#define COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* As env(1) has them. */
enum {
	STATUS_BAD_SETTING = 125,
	STATUS_NOT_EXECUTABLE = 126,
	STATUS_NOT_FOUND = 127,
};

enum { PATH_SIZE = 4096 };

/* "cuweir: " + text + newline, to stderr. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same, and exits with STATUS_BAD_SETTING. */
_Noreturn void refuse(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- where things are (places.c): beside the command, installed or in a build tree -------- */

struct places {
	char shim[PATH_SIZE];       /* libcuweir.so */
	char policies[PATH_SIZE];   /* directory of NAME.so */
	char simulation[PATH_SIZE]; /* directory of the simulated libcuda.so.1 and libcudart */
	char symbolize[PATH_SIZE];  /* the script */
};

/* Fills in what exists; a name that is not there is empty. */
void find_places(struct places *places);

/* The file that a program name means, as the shell finds it. False: there is none. */
bool find_program(const char *name, char path[PATH_SIZE]);

/* This command's own file; false, and an empty name, where nothing says which it is. */
bool find_self(char path[PATH_SIZE]);

/* ---- waiting for children (watch.c) -------------------------------------------------------- */

typedef void child_handler(int number);

/*
 * SIGCHLD as it is by default: where it is ignored, as whoever starts us may have it, the kernel
 * waits for children itself, and their status is lost. Returns what a child of ours gets back.
 */
child_handler *hear_children(void);

/* waitpid(), through signals. */
pid_t wait_for(pid_t child, int *ret_status);

/* ---- what a file on disk is (inspect.c) ----------------------------------------------------- */

enum cudart_form { CUDART_NONE, CUDART_SHARED, CUDART_STATIC };

struct inspection {
	bool readable;
	bool elf;
	bool script;             /* begins with #! */
	bool same_class;         /* of this machine and word size */
	bool dynamic;            /* has an interpreter, so it can be preloaded */
	bool library;            /* none, but what a dynamic linker wants to know */
	bool privileged;         /* setuid, setgid or capabilities: the loader ignores us */
	bool links_driver;       /* NEEDED libcuda.so.1 */
	bool opens_driver;       /* mentions libcuda.so.1 without being linked to it */
	bool opens_namespaces;   /* mentions dlmopen, which no preload reaches */
	bool nvidia_runtime;     /* the static runtime is NVIDIA's: it asks for private tables */
	enum cudart_form cudart;
	char cudart_name[128];   /* "libcudart.so.13" */
	char interpreter[256];   /* of a script */
};

/* `whole` reads all of the file, to find names in it; else its headers alone. */
void inspect(const char *path, bool whole, struct inspection *ret);

/* Which CUDA it has, and at which doors that is heard. Static storage. */
const char *cuda_of(const struct inspection *found);

/* ---- trying the settings in a process of their own (trial.c) -------------------------------- */

/*
 * Starts this command with the shim and the settings that are in the environment now, has it
 * open the policies, and ends it. NULL where all is well, else why not, in the buffer.
 */
const char *try_settings(char *buffer, size_t size);

/* What that process does; its status is the answer. */
_Noreturn void be_tried(void);

/* Of its argv[1]. */
#define TRIAL_ARGUMENT "--trial"

/* ---- the subcommands; argv[0] is the subcommand's name --------------------------------------- */

int command_run(int argc, char **argv);
int command_check(int argc, char **argv);
int command_policies(int argc, char **argv);
int command_symbolize(int argc, char **argv);
int command_completions(int argc, char **argv);

/* Whether the subcommand is asked for its help. */
bool wants_help(int argc, char **argv);

#endif
