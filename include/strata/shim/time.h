/* SPDX-License-Identifier: Apache-2.0 */
/* See pthread.h beside this. */
#pragma GCC system_header
#include_next <time.h>
#if !defined STRATA_SHIM_TIME_H && !defined __cplusplus
#define STRATA_SHIM_TIME_H
#ifdef __USE_POSIX199309
#pragma redefine_extname nanosleep strata_nanosleep
#ifdef __USE_XOPEN2K
#pragma redefine_extname clock_nanosleep strata_clock_nanosleep
#endif
#endif
#endif
