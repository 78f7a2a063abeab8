/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is live, summed up by call site: for the report and for the out-of-memory message.
 * Takes a page or two of memory for the time of the call; makes no CUDA call.
 */
#ifndef CW_SITES_H
#define CW_SITES_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stacks.h"

enum { CW_SITES_SHOWN = 16, CW_SITE_TEXT = 160 };

struct cw_site {
	uint64_t site;     /* as stored: one address, 0 where not known, or a stack */
	uint64_t bytes;
	uint64_t count;
	uint64_t smallest;
	uint64_t largest;
	uint16_t hook;     /* what was called */
	uint8_t kind;
	int16_t device;
};

/*
 * Fills at most `room` entries, the largest first, of one device or (device < 0) of all;
 * returns how many. *ret_sites is how many call sites there are.
 */
size_t cw_sites_collect(struct cw_site *sites, size_t room, int device, size_t *ret_sites);

#define CW_SITE_UNKNOWN "an unknown place"

/* "program+0x1234", or CW_SITE_UNKNOWN, of a frame of a stored site. Returns the buffer. */
const char *cw_site_text(char buffer[CW_SITE_TEXT], uint64_t stored, unsigned int frame);

/* The files that call sites lie in, for a tool that looks functions up in them. */
enum { CW_MODULES_MAX = 64 };

struct cw_modules {
	size_t count;
	const void *bases[CW_MODULES_MAX];
	const char *names[CW_MODULES_MAX]; /* the loader's */
};

void cw_modules_note(struct cw_modules *modules, uint64_t site);

/* As call sites name it, and where it is; the latter may be in the buffer. */
const char *cw_module_name(const struct cw_modules *modules, size_t index);
const char *cw_module_path(const struct cw_modules *modules, size_t index, char buffer[PATH_MAX]);

#endif
