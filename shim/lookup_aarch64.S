/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dlsym and dlvsym for AArch64; the twin of lookup_x86_64.S, which says why. `hint 34` is
 * `bti c`, spelled so that any assembler takes it; jumps go through x16, as BTI asks.
 */
	.hidden	cw_lookup_route
	.hidden	cw_lookup_find_real

	.macro	go real
	adrp	x16, \real
	ldr	x16, [x16, :lo12:\real]
	br	x16
	.endm

	.macro	save_arguments
	stp	x29, x30, [sp, #-48]!
	.cfi_def_cfa_offset 48
	.cfi_offset x29, -48
	.cfi_offset x30, -40
	mov	x29, sp
	stp	x0, x1, [sp, #16]
	str	x2, [sp, #32]
	.endm

	.macro	restore_return
	ldp	x29, x30, [sp], #48
	.cfi_def_cfa_offset 0
	.cfi_restore x29
	.cfi_restore x30
	.endm

	.macro	door name, real, set_version
	.globl	\name
	.type	\name, %function
	.p2align 4
\name:
	.cfi_startproc
	hint	34
	cbz	x1, 3f
	ldrb	w9, [x1]
	cmp	w9, #'c'
	b.eq	1f
	cmp	w9, #'n'
	b.eq	2f
3:	go	\real
1:	ldrb	w9, [x1, #1]
	cmp	w9, #'u'
	b.eq	4f
	b	3b
2:	ldrb	w9, [x1, #1]
	cmp	w9, #'v'
	b.ne	3b
	ldrb	w9, [x1, #2]
	cmp	w9, #'m'
	b.ne	3b
	ldrb	w9, [x1, #3]
	cmp	w9, #'l'
	b.ne	3b
4:	save_arguments
	mov	x3, x30
	\set_version
	bl	cw_lookup_route
	cbnz	x1, 5f
	restore_return
	ret
	.cfi_def_cfa_offset 48
	.cfi_offset x29, -48
	.cfi_offset x30, -40
5:	ldp	x0, x1, [sp, #16]
	ldr	x2, [sp, #32]
	restore_return
	b	3b
	.cfi_endproc
	.size	\name, . - \name
	.endm

	/* The first use: find both real functions, then go on as if nothing had been. */
	.macro	first_use name, real
	.type	\name, %function
	.p2align 4
\name:
	.cfi_startproc
	hint	34
	save_arguments
	bl	cw_lookup_find_real
	ldp	x0, x1, [sp, #16]
	ldr	x2, [sp, #32]
	restore_return
	go	\real
	.cfi_endproc
	.size	\name, . - \name
	.endm

	.text
	door	dlsym, cw_lookup_dlsym, "mov x2, xzr"
	door	dlvsym, cw_lookup_dlvsym, ""
	first_use first_dlsym, cw_lookup_dlsym
	first_use first_dlvsym, cw_lookup_dlvsym

	.data
	.p2align 3
	.globl	cw_lookup_dlsym
	.hidden	cw_lookup_dlsym
	.type	cw_lookup_dlsym, %object
	.size	cw_lookup_dlsym, 8
cw_lookup_dlsym:
	.xword	first_dlsym
	.globl	cw_lookup_dlvsym
	.hidden	cw_lookup_dlvsym
	.type	cw_lookup_dlvsym, %object
	.size	cw_lookup_dlvsym, 8
cw_lookup_dlvsym:
	.xword	first_dlvsym

#include "aarch64_note.h"

	.section .note.GNU-stack, "", %progbits
