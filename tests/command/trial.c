/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A policy whose open uses all of the host. Its argument is a file, which it makes unless it is
 * only tried; "stdout", "crash" and "exit" are what no policy should do.
 */
#include <cuweir/policy.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool visit(const struct cuweir_record *record, void *argument)
{
	return true;
}

/* Each entry of the host, once; what it answers is of no interest. */
static void use_all(const struct cuweir_host *host)
{
	struct cuweir_totals totals = { .struct_size = sizeof(totals) };
	struct cuweir_reservation *reservation = NULL;
	void *memory = NULL;

	host->log(host, "trial: a line");
	host->totals(host, 0, CUWEIR_KIND_DEVICE, &totals);
	host->walk(host, visit, NULL);
	host->wait_for_free(host, 1);
	host->set_debug(host, host->get_debug(host));
	host->driver_function(host, "cuMemAlloc_v2", &memory);
	host->current_event(host);
	host->set_budget(host, 3, 0, 1 << 20);
	host->get_budget(host, 3, NULL, NULL, NULL);
	if (host->reservation_open(host, 3, &reservation) == CUWEIR_SUCCESS) {
		host->reservation_add(reservation, 1);
		host->reservation_reserve(reservation, 1);
		host->reservation_get_size(reservation);
		host->reservation_is_used(reservation);
		host->reservation_is_closed(reservation);
		host->reservation_close(reservation);
		host->reservation_destroy(reservation);
	}
	host->set_budget(host, 3, 0, UINT64_MAX);
	host->trim(host, 0);
	host->next->deallocate(host->next_state, NULL);
}

static int open_trial(const struct cuweir_host *host, const char *arguments, void **ret_state)
{
	int fd;

	use_all(host);
	if (strcmp(arguments, "stdout") == 0) {
		return write(STDOUT_FILENO, "trial\n", 6) == 6 ? CUWEIR_SUCCESS : CUWEIR_ERROR_UNKNOWN;
	}
	if (strcmp(arguments, "crash") == 0) {
		raise(SIGSEGV);
	}
	if (strcmp(arguments, "exit") == 0) {
		_exit(5);
	}
	if (arguments[0] == '\0' || (host->flags & CUWEIR_HOST_TRIAL) != 0) {
		return CUWEIR_SUCCESS;
	}
	fd = open(arguments, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (fd < 0) {
		return host->refuse(host, "cannot make its file");
	}
	close(fd);
	return CUWEIR_SUCCESS;
}

const struct cuweir_policy cuweir_policy_entry = {
	.struct_size = sizeof(struct cuweir_policy),
	.version = CUWEIR_POLICY_VERSION,
	.name = "trial",
	.summary = "uses all of the host",
	.open = open_trial,
};
