/* SPDX-License-Identifier: Apache-2.0 */
/* Compiler words used everywhere in the shim. */
#ifndef CW_COMMON_H
#define CW_COMMON_H

#define CW_EXPORT __attribute__((visibility("default")))
#define CW_COLD __attribute__((cold, noinline))
#define CW_LIKELY(x) __builtin_expect(!!(x), 1)
#define CW_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define CW_PRINTF(text, first) __attribute__((format(printf, text, first)))

/* The preloaded object's TLS lies in the static block: one instruction to reach. */
#define CW_TLS _Thread_local __attribute__((tls_model("initial-exec")))

/* For variables of ours that other files name: reached without a table of addresses. */
#define CW_HIDDEN __attribute__((visibility("hidden")))

/*
 * Whether a word is other than 0, as a load of the named order would say, in one instruction
 * less than the compilers make of that.
 */
#if defined(__x86_64__) && defined(__GCC_ASM_FLAG_OUTPUTS__) && !defined(__SANITIZE_THREAD__)
#define CW_IS_SET(word, order)                                                                     \
	(__extension__({                                                                           \
		_Bool set_;                                                                        \
		_Static_assert(sizeof(word) == 4 || sizeof(word) == 8, "a word");                  \
		if (sizeof(word) == 4) {                                                           \
			__asm__ volatile("cmpl $0, %1" : "=@ccne"(set_) : "m"(word) : "memory");   \
		} else {                                                                           \
			__asm__ volatile("cmpq $0, %1" : "=@ccne"(set_) : "m"(word) : "memory");   \
		}                                                                                  \
		set_;                                                                              \
	}))
/* Adds to a word that only the holder of a lock writes, and anybody may read. */
#define CW_ADD_OWNED(word, by)                                                                     \
	__asm__ volatile("addq %1, %0" : "+m"(word) : "er"((int64_t)(by)) : "cc")
#else
#define CW_ADD_OWNED(word, by)                                                                     \
	__atomic_store_n(&(word), (word) + (uint64_t)(by), __ATOMIC_RELAXED)
#define CW_IS_SET(word, order) (__atomic_load_n(&(word), order) != 0)
#endif

#endif
