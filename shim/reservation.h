/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reservations, after Arrow's AllocationReservation: bytes claimed from the budget of a device
 * ahead of one allocation. A reservation is used by one thread at a time; the budget behind it
 * by any. Statuses are CUresults: CUDA_ERROR_ILLEGAL_STATE (401) for what comes too late.
 */
#ifndef CW_RESERVATION_H
#define CW_RESERVATION_H

#include <stdbool.h>
#include <stdint.h>

struct cuweir_reservation;

int cw_reservation_open(int device, struct cuweir_reservation **ret_reservation);
int cw_reservation_add(struct cuweir_reservation *reservation, uint64_t bytes);
uint64_t cw_reservation_get_size(const struct cuweir_reservation *reservation);
bool cw_reservation_is_used(const struct cuweir_reservation *reservation);
bool cw_reservation_is_closed(const struct cuweir_reservation *reservation);
int cw_reservation_allocate_buffer(struct cuweir_reservation *reservation, void *stream,
				   void **ret_memory, const void *site);
int cw_reservation_close(struct cuweir_reservation *reservation);
void cw_reservation_destroy(struct cuweir_reservation *reservation);

#endif
