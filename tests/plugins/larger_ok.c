/* SPDX-License-Identifier: Apache-2.0 */
/* Made with a newer header, of whose new entries it uses none: it runs. */
#define LARGER_NAME "larger_ok"
#include "larger.h"

const struct larger_table larger_entry = { .policy = LARGER_POLICY };
