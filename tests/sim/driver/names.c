/* SPDX-License-Identifier: Apache-2.0 */
/* Names of error codes, and a text made of the name: "out of memory". */
#include <ctype.h>
#include <string.h>

#include "internal.h"

static const struct {
	const char *name;
	int value;
} errors[] = {
#define ERROR(name, value) {#name, value},
#include "errors.def"
#undef ERROR
};

#define N_ERRORS (sizeof(errors) / sizeof(errors[0]))

static char texts[N_ERRORS][64];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void build(void)
{
	for (size_t i = 0; i < N_ERRORS; i++) {
		const char *n = errors[i].name;
		size_t j = 0;

		n += strncmp(n, "CUDA_ERROR_", 11) == 0 ? 11 : 5;
		for (; n[j] != '\0' && j + 1 < sizeof(texts[i]); j++) {
			texts[i][j] = n[j] == '_' ? ' ' : (char)tolower((unsigned char)n[j]);
		}
	}
}

static CUresult find(CUresult error, const char **ret, bool text)
{
	if (ret == NULL) {
		return CUDA_ERROR_INVALID_VALUE;
	}
	pthread_once(&once, build);
	for (size_t i = 0; i < N_ERRORS; i++) {
		if (errors[i].value == (int)error) {
			*ret = text ? texts[i] : errors[i].name;
			return CUDA_SUCCESS;
		}
	}
	*ret = NULL;
	return CUDA_ERROR_INVALID_VALUE;
}

SIM_API(cuGetErrorName, (CUresult error, const char **pStr), (error), (0),
	find(error, pStr, false))
SIM_API(cuGetErrorString, (CUresult error, const char **pStr), (error), (0),
	find(error, pStr, true))
