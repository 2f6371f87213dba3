/* SPDX-License-Identifier: Apache-2.0 */
/* See pthread.h beside this. */
#pragma GCC system_header
#include_next <stdlib.h>
#if !defined STRATA_SHIM_STDLIB_H && !defined __cplusplus
#define STRATA_SHIM_STDLIB_H
#pragma redefine_extname system strata_system
#endif
