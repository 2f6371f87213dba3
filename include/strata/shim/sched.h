/* SPDX-License-Identifier: Apache-2.0 */
/* See pthread.h beside this. */
#pragma GCC system_header
#include_next <sched.h>
#if !defined STRATA_SHIM_SCHED_H && !defined __cplusplus
#define STRATA_SHIM_SCHED_H
#pragma redefine_extname sched_yield strata_sched_yield
#endif
