/* SPDX-License-Identifier: Apache-2.0 */
/* See pthread.h beside this. */
#pragma GCC system_header
#include_next <stdio.h>
#if !defined STRATA_SHIM_STDIO_H && !defined __cplusplus
#define STRATA_SHIM_STDIO_H
#ifdef __USE_POSIX2
#pragma redefine_extname popen strata_popen
#pragma redefine_extname pclose strata_pclose
#endif
#endif
