/* SPDX-License-Identifier: Apache-2.0 */
#include "reservation.h"

#include <cuweir/policy.h>
#include <stdlib.h>

#include "direct.h"
#include "totals.h"
#include "where.h"

struct cuweir_reservation {
	struct cw_budget *budget; /* of the first add that claimed; NULL: without a budget */
	uint64_t size;            /* the sum of what was added; stays after use and close */
	uint64_t claimed;         /* what of it is still the reservation's */
	int device;
	bool used;
	bool closed;
};

int cw_reservation_open(int device, struct cuweir_reservation **ret_reservation)
{
	struct cuweir_reservation *reservation;

	if (ret_reservation == NULL || device < 0 || device >= CW_TOTAL_DEVICES) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	reservation = calloc(1, sizeof(*reservation));
	if (reservation == NULL) {
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	reservation->device = device;
	*ret_reservation = reservation;
	return CUDA_SUCCESS;
}

int cw_reservation_add(struct cuweir_reservation *reservation, uint64_t bytes)
{
	struct cw_budget *budget;

	if (reservation == NULL) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (reservation->closed || reservation->used) {
		return CUDA_ERROR_ILLEGAL_STATE;
	}
	if (bytes > UINT64_MAX - reservation->size) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	budget = reservation->budget != NULL
			 ? reservation->budget
			 : cw_budget_of(reservation->device, CUWEIR_KIND_DEVICE);
	if (reservation->budget == NULL && !cw_budget_limits(budget)) {
		budget = NULL;
	}
	if (!cw_budget_reserve(budget, bytes)) {
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (budget != NULL) {
		reservation->budget = budget;
		reservation->claimed += bytes;
	}
	reservation->size += bytes;
	return CUDA_SUCCESS;
}

uint64_t cw_reservation_get_size(const struct cuweir_reservation *reservation)
{
	return reservation != NULL ? reservation->size : 0;
}

bool cw_reservation_is_used(const struct cuweir_reservation *reservation)
{
	return reservation != NULL && reservation->used;
}

bool cw_reservation_is_closed(const struct cuweir_reservation *reservation)
{
	return reservation == NULL || reservation->closed;
}

static void give_back(struct cuweir_reservation *reservation)
{
	cw_budget_unreserve(reservation->budget, reservation->claimed);
	reservation->claimed = 0;
}

/* A budget that was set between two adds has been asked for the later ones alone. */
static bool claim_all(struct cuweir_reservation *reservation)
{
	uint64_t rest = reservation->size - reservation->claimed;

	if (reservation->claimed == 0 || rest == 0) {
		return true;
	}
	if (!cw_budget_reserve(reservation->budget, rest)) {
		return false;
	}
	reservation->claimed = reservation->size;
	return true;
}

/*
 * Without a budget when it was made, nothing is claimed, and a budget set since then is asked
 * as for any allocation.
 */
int cw_reservation_allocate_buffer(struct cuweir_reservation *reservation, void *stream,
				   void **ret_memory, const void *site)
{
	struct cw_direct direct = { .ordered = true, .stream = stream, .site = site };
	struct cw_where where;
	CUresult result;

	if (ret_memory != NULL) {
		*ret_memory = NULL;
	}
	if (reservation == NULL || ret_memory == NULL) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (reservation->closed || reservation->used) {
		return CUDA_ERROR_ILLEGAL_STATE;
	}
	cw_where_of_stream(stream, &where);
	if (where.device >= 0 && where.device != reservation->device) {
		return CUDA_ERROR_INVALID_DEVICE;
	}
	reservation->used = true;
	if (reservation->size == 0) {
		return CUDA_SUCCESS;
	}
	if (!claim_all(reservation)) {
		give_back(reservation);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	direct.size = reservation->size;
	direct.budget = reservation->budget;
	direct.claimed = reservation->claimed;
	result = cw_direct_allocate(&direct);
	*ret_memory = direct.memory;
	if (direct.claim_used) {
		cw_budget_use(reservation->budget, reservation->claimed);
		reservation->claimed = 0;
	}
	give_back(reservation);
	return (int)result;
}

int cw_reservation_close(struct cuweir_reservation *reservation)
{
	if (reservation == NULL || reservation->closed) {
		return CUDA_SUCCESS;
	}
	reservation->closed = true;
	give_back(reservation);
	return CUDA_SUCCESS;
}

void cw_reservation_destroy(struct cuweir_reservation *reservation)
{
	cw_reservation_close(reservation);
	free(reservation);
}
