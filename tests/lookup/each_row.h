/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Helps the stand-ins walk hooks.def: PLAIN or LOOKUP for a row, by its body, so that the two
 * cuGetProcAddress rows can be written by hand and all others be generated.
 */
#ifndef CW_TEST_EACH_ROW_H
#define CW_TEST_EACH_ROW_H

#define ROW_SECOND(a, b, ...) b
#define ROW_SELECT(...) ROW_SECOND(__VA_ARGS__, )
#define ROW_PASTE(a, b) ROW_PASTE_(a, b)
#define ROW_PASTE_(a, b) a##b
#define ROW_IS_cw_get_proc_address_v1 ~, LOOKUP
#define ROW_IS_cw_get_proc_address ~, LOOKUP
#define ROW_KIND(body) ROW_SELECT(ROW_IS_##body, PLAIN)

#define ARGS(...) (__VA_ARGS__)

/* What the stand-in for a function returns, whatever its arguments. */
#define FAKE_RESULT(symbol) (1000 + (int)CW_HOOK_##symbol)

#endif
