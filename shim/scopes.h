/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scoped peaks. The hot path keeps one highest value per cell (totals.h), of the time since the
 * last mark; here marks are set, and what was highest before them is folded into all that were
 * open then. Any thread; statuses are CUresults.
 */
#ifndef CW_SCOPES_H
#define CW_SCOPES_H

#include <cuweir/cuweir.h>

int cw_scope_reset(int device, int kind, uint64_t value);
int cw_scope_peak(int device, int kind, uint64_t *ret_peak);
int cw_scope_push(int device, int kind);
int cw_scope_pop(int device, int kind, struct cuweir_scope *ret_scope);

void cw_scopes_postfork_child(void);

#endif
