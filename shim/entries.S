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

/* Only an object whose files all say so is protected; here is no code. */
#if defined(__ARM_FEATURE_BTI_DEFAULT) && __ARM_FEATURE_BTI_DEFAULT == 1
	.section .note.gnu.property, "a", %note
	.p2align 3
	.word	4
	.word	16
	.word	5
	.asciz	"GNU"
	.word	0xc0000000
	.word	4
	.word	1
	.word	0
#endif

	.section .note.GNU-stack, "", %progbits
