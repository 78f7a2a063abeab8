/* SPDX-License-Identifier: Apache-2.0 */
/* CUWEIR_FOLLOW=0: the environment of this process is what its children get. */
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "config.h"

#define OWN_NAME "libcuweir.so"
#define PRELOAD "LD_PRELOAD="

static bool starts_with(const char *text, const char *start)
{
	return strncmp(text, start, strlen(start)) == 0;
}

static bool names_own(const char *text, size_t length)
{
	const size_t own = sizeof(OWN_NAME) - 1;

	return length >= own && memcmp(text + length - own, OWN_NAME, own) == 0;
}

/* Of a list that blanks or colons separate, keeps what does not name our object. */
static void leave_out_own(char *list)
{
	char *kept = list;

	for (char *at = list; *at != '\0';) {
		size_t length = strcspn(at, " :");
		size_t whole = length + (at[length] != '\0');

		if (!names_own(at, length)) {
			memmove(kept, at, whole);
			kept += whole;
		}
		at += whole;
	}
	while (kept > list && (kept[-1] == ':' || kept[-1] == ' ')) {
		kept--;
	}
	*kept = '\0';
}

/* The simulated GPU reads its own later; who has none of ours would not find it there. */
static bool is_ours(const char *entry)
{
	return starts_with(entry, "CUWEIR_") && !starts_with(entry, "CUWEIR_SIM_") &&
	       !starts_with(entry, "CUWEIR_TEST_");
}

void cw_config_leave_children(void)
{
	char **kept = environ;

	for (char **entry = environ; entry != NULL && *entry != NULL; entry++) {
		if (starts_with(*entry, PRELOAD)) {
			leave_out_own(*entry + sizeof(PRELOAD) - 1);
		}
		if (!is_ours(*entry) && strcmp(*entry, PRELOAD) != 0) {
			*kept++ = *entry;
		}
	}
	if (kept != NULL) {
		*kept = NULL;
	}
}
