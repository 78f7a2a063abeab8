/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dlsym and dlvsym for x86-64, see lookup.h. Names that begin with "cu" or "nvml" are shown
 * to cw_lookup_route(); all others jump on to the real function with every register and the
 * return address as the caller left them. No C compiler promises that jump (measured: -O0,
 * sanitizers and an escaping local each turn it into a call).
 */
#ifdef __CET__
#include <cet.h>
#endif

	.hidden	cw_lookup_route
	.hidden	cw_lookup_find_real

	.macro	door name, real, set_version
	.globl	\name
	.type	\name, @function
	.p2align 4
\name:
	.cfi_startproc
	endbr64
	testq	%rsi, %rsi
	je	3f
	cmpb	$'c', (%rsi)
	je	1f
	cmpb	$'n', (%rsi)
	je	2f
3:	jmp	*\real(%rip)
1:	cmpb	$'u', 1(%rsi)
	je	4f
	jmp	*\real(%rip)
2:	cmpb	$'v', 1(%rsi)
	jne	3b
	cmpb	$'m', 2(%rsi)
	jne	3b
	cmpb	$'l', 3(%rsi)
	jne	3b
4:	subq	$40, %rsp
	.cfi_adjust_cfa_offset 40
	movq	%rdi, (%rsp)
	movq	%rsi, 8(%rsp)
	movq	%rdx, 16(%rsp)
	movq	40(%rsp), %rcx
	\set_version
	call	cw_lookup_route
	testq	%rdx, %rdx
	movq	(%rsp), %rdi
	movq	8(%rsp), %rsi
	movq	16(%rsp), %rdx
	leaq	40(%rsp), %rsp
	.cfi_adjust_cfa_offset -40
	jne	3b
	ret
	.cfi_endproc
	.size	\name, . - \name
	.endm

	/* The first use: find both real functions, then go on as if nothing had been. */
	.macro	first_use name, real
	.type	\name, @function
	.p2align 4
\name:
	.cfi_startproc
	endbr64
	subq	$40, %rsp
	.cfi_adjust_cfa_offset 40
	movq	%rdi, (%rsp)
	movq	%rsi, 8(%rsp)
	movq	%rdx, 16(%rsp)
	call	cw_lookup_find_real
	movq	(%rsp), %rdi
	movq	8(%rsp), %rsi
	movq	16(%rsp), %rdx
	addq	$40, %rsp
	.cfi_adjust_cfa_offset -40
	jmp	*\real(%rip)
	.cfi_endproc
	.size	\name, . - \name
	.endm

	.text
	door	dlsym, cw_lookup_dlsym, "xorl %edx, %edx"
	door	dlvsym, cw_lookup_dlvsym, ""
	first_use first_dlsym, cw_lookup_dlsym
	first_use first_dlvsym, cw_lookup_dlvsym

	.data
	.p2align 3
	.globl	cw_lookup_dlsym
	.hidden	cw_lookup_dlsym
	.type	cw_lookup_dlsym, @object
	.size	cw_lookup_dlsym, 8
cw_lookup_dlsym:
	.quad	first_dlsym
	.globl	cw_lookup_dlvsym
	.hidden	cw_lookup_dlvsym
	.type	cw_lookup_dlvsym, @object
	.size	cw_lookup_dlvsym, 8
cw_lookup_dlvsym:
	.quad	first_dlvsym

	.section .note.GNU-stack, "", @progbits
