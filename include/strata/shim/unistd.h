/* SPDX-License-Identifier: Apache-2.0 */
/* See pthread.h beside this. */
#pragma GCC system_header
#include_next <unistd.h>
#if !defined STRATA_SHIM_UNISTD_H && !defined __cplusplus
#define STRATA_SHIM_UNISTD_H
#pragma redefine_extname sleep strata_sleep
#pragma redefine_extname pause strata_pause
#if (defined __USE_XOPEN_EXTENDED && !defined __USE_XOPEN2K8) || defined __USE_MISC
#pragma redefine_extname usleep strata_usleep
#endif
#pragma redefine_extname execv strata_execv
#pragma redefine_extname execve strata_execve
#pragma redefine_extname execvp strata_execvp
#pragma redefine_extname execl strata_execl
#pragma redefine_extname execlp strata_execlp
#pragma redefine_extname execle strata_execle
#ifdef __USE_XOPEN2K8
#pragma redefine_extname fexecve strata_fexecve
#endif
#ifdef __USE_GNU
#pragma redefine_extname execvpe strata_execvpe
#endif
#endif
