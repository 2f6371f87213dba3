/* SPDX-License-Identifier: Apache-2.0 */
/* See pthread.h beside this. */
#pragma GCC system_header
#include_next <semaphore.h>
#ifdef __cplusplus
#ifndef _GLIBCXX_SEMAPHORE_BASE_H
#include <pthread.h>
#endif
#elif !defined STRATA_SHIM_SEMAPHORE_H
#define STRATA_SHIM_SEMAPHORE_H
#pragma redefine_extname sem_init strata_sem_init
#pragma redefine_extname sem_destroy strata_sem_destroy
#pragma redefine_extname sem_wait strata_sem_wait
#pragma redefine_extname sem_trywait strata_sem_trywait
#ifdef __USE_XOPEN2K
#pragma redefine_extname sem_timedwait strata_sem_timedwait
#endif
#ifdef __USE_GNU
#pragma redefine_extname sem_clockwait strata_sem_clockwait
#endif
#pragma redefine_extname sem_post strata_sem_post
#pragma redefine_extname sem_getvalue strata_sem_getvalue
#endif
