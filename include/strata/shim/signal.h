/* SPDX-License-Identifier: Apache-2.0 */
/* See pthread.h beside this. */
#pragma GCC system_header
#include_next <signal.h>
#if !defined STRATA_SHIM_SIGNAL_H && !defined __cplusplus
#define STRATA_SHIM_SIGNAL_H
#pragma redefine_extname raise strata_raise
#ifdef __USE_POSIX
#pragma redefine_extname sigprocmask strata_sigprocmask
#pragma redefine_extname sigpending strata_sigpending
#pragma redefine_extname sigsuspend strata_sigsuspend
#ifdef __USE_POSIX199506
#pragma redefine_extname sigwait strata_sigwait
#endif
#ifdef __USE_POSIX199309
#pragma redefine_extname sigwaitinfo strata_sigwaitinfo
#pragma redefine_extname sigtimedwait strata_sigtimedwait
#endif
#endif
#if defined __USE_POSIX199506 || defined __USE_UNIX98
#pragma redefine_extname pthread_sigmask strata_pthread_sigmask
#pragma redefine_extname pthread_kill strata_pthread_kill
#ifdef __USE_GNU
#pragma redefine_extname pthread_sigqueue strata_pthread_sigqueue
#endif
#endif
#endif
