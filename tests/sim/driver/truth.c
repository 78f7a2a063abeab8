/* SPDX-License-Identifier: Apache-2.0 */
/* sim.h's answers. They use no wrapper, so they count as no call. */
#include <string.h>

#include "internal.h"

static struct sim_device *device(int i, int kind)
{
	sim_settings_ready();
	if (i < -1 || i >= sim_n_devices || kind < 0 || kind >= CUWEIR_SIM_KINDS) {
		return NULL;
	}
	return i < 0 ? &sim_nowhere : &sim_devices[i];
}

/* Device 0's figures hold also what is no device's. */
SIM_EXPORT unsigned long long cuweir_sim_used(int dev, int kind)
{
	struct sim_device *d = device(dev, kind);

	if (d == NULL) {
		return 0;
	}
	return atomic_load(&d->used[kind]) + (dev == 0 ? atomic_load(&sim_nowhere.used[kind]) : 0);
}

SIM_EXPORT unsigned long long cuweir_sim_live(int dev, int kind)
{
	struct sim_device *d = device(dev, kind);

	if (d == NULL) {
		return 0;
	}
	return atomic_load(&d->live[kind]) + (dev == 0 ? atomic_load(&sim_nowhere.live[kind]) : 0);
}

SIM_EXPORT unsigned long long cuweir_sim_free(int dev)
{
	struct sim_device *d = device(dev, 0);
	uint64_t n;

	if (d == NULL) {
		return 0;
	}
	pthread_mutex_lock(&d->arena.lock);
	n = sim_device_free(d);
	pthread_mutex_unlock(&d->arena.lock);
	return n;
}

SIM_EXPORT unsigned long long cuweir_sim_calls(const char *symbol)
{
	unsigned long long n = 0;

	for (int i = 0; i < SIM_FN_COUNT; i++) {
		if (symbol == NULL || strcmp(symbol, sim_fns[i].symbol) == 0) {
			n += atomic_load(&sim_calls[i]);
		}
	}
	return n;
}

SIM_EXPORT void *cuweir_sim_private_entry(const char *base, int version, unsigned long long flags)
{
	int status = 0;

	sim_settings_ready();
	return sim_lookup(base, version, flags, &status);
}
