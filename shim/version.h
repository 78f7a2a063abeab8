/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CW_VERSION_H
#define CW_VERSION_H

/* Meson hands the project's version over. */
#ifndef CW_VERSION
#define CW_VERSION "unknown"
#endif

#endif
