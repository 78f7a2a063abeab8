/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where each exported definition lies from here, which C has no initializer for: addresses would
 * be relocations, 8 KiB of them. -Bsymbolic-functions makes them ours whoever exports the name.
 */
	.section .rodata
	.balign 4
	.globl cw_entries_
	.hidden cw_entries_
	.type cw_entries_, %object
cw_entries_:
#define CW_DRIVER(symbol, ...) .long symbol - cw_entries_
#define CW_RUNTIME(symbol, ...) .long symbol - cw_entries_
#define CW_RUNTIME0(symbol, ...) .long symbol - cw_entries_
#define CW_REAL_ONLY(symbol)
#include "hooks.def"
	.size cw_entries_, . - cw_entries_

#include "aarch64_note.h"

	.section .note.GNU-stack, "", %progbits
