/* SPDX-License-Identifier: Apache-2.0 */
/* The summary and leak list at exit (CUWEIR_REPORT). Makes no CUDA call. */
#ifndef CW_REPORT_H
#define CW_REPORT_H

void cw_report(void);
void cw_report_json(void);

/* "device", "managed", ... */
const char *cw_kind_name(unsigned int kind);

#endif
