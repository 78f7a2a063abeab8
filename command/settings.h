/* SPDX-License-Identifier: Apache-2.0 */
/* Options as variables: what the shim reads. */
#ifndef SETTINGS_H
#define SETTINGS_H

#include "options.h"

void set_variables(const struct options *options, const struct places *places);

/* "export NAME='value'" for each of them, to be evaluated by a shell. */
void print_variables(void);

#endif
