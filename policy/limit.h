/* SPDX-License-Identifier: Apache-2.0 */
/* What the policy `limit` was given. */
#ifndef CUWEIR_POLICY_LIMIT_H
#define CUWEIR_POLICY_LIMIT_H

#include "args.h"
#include "limit_shared.h"

#include <stdatomic.h>

#define LIMIT_DEVICES 64
#define LIMIT_NONE UINT64_MAX

struct limit {
	const struct cuweir_host *host;
	_Atomic(uint64_t) bytes[LIMIT_DEVICES]; /* LIMIT_NONE: no limit; 0 where it is a percentage */
	unsigned int percent[LIMIT_DEVICES];  /* 0: none */
	atomic_bool is_set[LIMIT_DEVICES];    /* the budget of the device is there */
	bool is_named[LIMIT_DEVICES];         /* by its own number */
	atomic_bool is_checked;               /* whether those are there */
	bool has_percent;
	bool is_open;                         /* open has returned, and nothing is refused */
	atomic_bool is_pending;               /* a percentage or a number waits for the driver */
	uint64_t safety;
	char shared_name[SHARED_NAME_MAX + 1]; /* "": not shared */
	unsigned int slot; /* of the claims; of a shared one only */
	struct shared shared;
	atomic_int shared_devices[LIMIT_DEVICES]; /* the number in the file, plus 1; 0: not asked */
	atomic_bool told;
	atomic_bool order_is_known; /* of it and a policy that keeps memory, and told if need be */
};

#define LIMIT_ARGUMENTS                                                                           \
	"SIZE or PERCENT%: for every device: 8GiB, 80%\n"                                         \
	"DEVICE=SIZE|PERCENT%: for one: 0=8GiB,1=512MiB, or gpu0=8GiB\n"                          \
	"shared=NAME: together with all processes of this user that name the same\n"              \
	"safety=SIZE (0): tell programs of so much less free memory than there is"

/* Fills `limit`, which is all 0, from the arguments; the status of `open`. */
int limit_read(struct limit *limit, const struct cuweir_host *host, const char *arguments);

/*
 * Turns percentages into bytes where the driver can be asked, sets the budgets that are known
 * by then, and tells once of devices that are named and not there. Any thread; what is set
 * already stays. `may_init`: the program initializes the driver now. The status of `open`.
 */
int limit_set_budgets(struct limit *limit, bool may_init);

/* The device's number in the shared file; -1 where it cannot be had. */
int limit_shared_device(struct limit *limit, int device);

#endif
