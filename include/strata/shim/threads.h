/* SPDX-License-Identifier: Apache-2.0 */
/* See pthread.h beside this. In C++ as in C, where nothing else brings this header: a macro would also
   rename std::call_once(). Before the declarations: behind them g++ does nothing. */
#pragma GCC system_header
#ifndef STRATA_SHIM_THREADS_H
#define STRATA_SHIM_THREADS_H
#pragma redefine_extname thrd_create strata_thrd_create
#pragma redefine_extname thrd_equal strata_thrd_equal
#pragma redefine_extname thrd_current strata_thrd_current
#pragma redefine_extname thrd_sleep strata_thrd_sleep
#pragma redefine_extname thrd_exit strata_thrd_exit
#pragma redefine_extname thrd_detach strata_thrd_detach
#pragma redefine_extname thrd_join strata_thrd_join
#pragma redefine_extname thrd_yield strata_thrd_yield
#pragma redefine_extname mtx_init strata_mtx_init
#pragma redefine_extname mtx_lock strata_mtx_lock
#pragma redefine_extname mtx_timedlock strata_mtx_timedlock
#pragma redefine_extname mtx_trylock strata_mtx_trylock
#pragma redefine_extname mtx_unlock strata_mtx_unlock
#pragma redefine_extname mtx_destroy strata_mtx_destroy
#pragma redefine_extname call_once strata_call_once
#pragma redefine_extname cnd_init strata_cnd_init
#pragma redefine_extname cnd_signal strata_cnd_signal
#pragma redefine_extname cnd_broadcast strata_cnd_broadcast
#pragma redefine_extname cnd_wait strata_cnd_wait
#pragma redefine_extname cnd_timedwait strata_cnd_timedwait
#pragma redefine_extname cnd_destroy strata_cnd_destroy
#pragma redefine_extname tss_create strata_tss_create
#pragma redefine_extname tss_get strata_tss_get
#pragma redefine_extname tss_set strata_tss_set
#pragma redefine_extname tss_delete strata_tss_delete
#endif
#include_next <threads.h>
