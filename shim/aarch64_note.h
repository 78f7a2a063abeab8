/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For assembler: that the file can run with branch targets checked, which an object is only where
 * all its files say so.
 */
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
