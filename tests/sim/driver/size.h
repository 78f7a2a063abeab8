/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes as settings spell them, for the driver and for NVML. */
#ifndef CUWEIR_SIM_SIZE_H
#define CUWEIR_SIM_SIZE_H

#include <stdlib.h>

#define SIM_DEFAULT_CAPACITY (24ULL << 30)

static inline unsigned long long sim_parse_size(const char *s)
{
	char *end = NULL;
	unsigned long long n = strtoull(s, &end, 0);
	int shift = 0;

	switch (end != NULL ? *end : '\0') {
	case 'k':
	case 'K':
		shift = 10;
		break;
	case 'm':
	case 'M':
		shift = 20;
		break;
	case 'g':
	case 'G':
		shift = 30;
		break;
	case 't':
	case 'T':
		shift = 40;
		break;
	default:
		break;
	}
	return n << shift;
}
#endif
