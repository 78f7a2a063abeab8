/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one policy that is built in: with CUWEIR_DEBUG=1 and no policy that shows events itself,
 * a readable line for each allocation and each free, on stderr or in CUWEIR_LOG. On the public
 * contract, as any other.
 */
#ifndef CW_BUILTIN_H
#define CW_BUILTIN_H

#include <cuweir/policy.h>

extern const struct cuweir_policy cw_builtin_lines;

#endif
