/* SPDX-License-Identifier: Apache-2.0 */
/* Between settings.c, call.c, rules.c, trace.c and device.c only: what happens before a call. */
#ifndef CUWEIR_SIM_PRIVATE_H
#define CUWEIR_SIM_PRIVATE_H

extern int sim_n_rules;

void sim_rules_read(const char *text);
CUresult sim_rules_ask(enum sim_fn fn);
void sim_trace_open(const char *pattern);
void sim_devices_setup(void);
bool sim_settings_is_inited(void);
bool sim_settings_is_forked(void);
#endif
