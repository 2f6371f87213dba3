/* SPDX-License-Identifier: Apache-2.0 */
/* C11's threads on strata's workers, for C and C++. Each function is its namesake of <threads.h>
   with `strata_` in front: the same arguments and results, on the C library's own types. These are
   the threads, mutexes, condition variables and values of strata/pthread.h by other names, so what
   is said there of how they wait holds here, too: a thread may be joined by either's functions, and
   cancelled. An object belongs to one side: one that strata_mtx_init() has made is used with
   strata_ functions alone.

     thrd_t t;
     int result;
     if (strata_thrd_create(&t, work, argument) == thrd_success) strata_thrd_join(t, &result); */
#ifndef STRATA_THREADS_H
#define STRATA_THREADS_H

#include <threads.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- threads ---- */
/* thrd_nomem: no memory; thrd_error: no room for another stack, or no OS threads for workers. */
int strata_thrd_create(thrd_t* thread, thrd_start_t start, void* argument);
int strata_thrd_equal(thrd_t a, thrd_t b);
thrd_t strata_thrd_current(void);
/* 0; -1: a handler has run, and *left is what is missing; -2: what is asked for is no time. A point
   of cancellation. */
int strata_thrd_sleep(const struct timespec* time, struct timespec* left);
/* Runs the destructors of values; in main() it ends main() alone. */
void strata_thrd_exit(int result) __attribute__((noreturn));
int strata_thrd_detach(thrd_t thread);
/* Waits until it has ended. A point of cancellation. */
int strata_thrd_join(thrd_t thread, int* result);
void strata_thrd_yield(void);

/* ---- mutexes ---- */
int strata_mtx_init(mtx_t* mutex, int type);
/* Waits until it is free. */
int strata_mtx_lock(mtx_t* mutex);
/* The same, until then at most, on CLOCK_REALTIME: thrd_timedout. */
int strata_mtx_timedlock(mtx_t* mutex, const struct timespec* until);
/* thrd_busy: another has it. */
int strata_mtx_trylock(mtx_t* mutex);
int strata_mtx_unlock(mtx_t* mutex);
void strata_mtx_destroy(mtx_t* mutex);
/* Waits where another calls it. */
void strata_call_once(once_flag* flag, void (*function)(void));

/* ---- condition variables ---- */
int strata_cnd_init(cnd_t* condition);
int strata_cnd_signal(cnd_t* condition);
int strata_cnd_broadcast(cnd_t* condition);
/* Points of cancellation, both. */
int strata_cnd_wait(cnd_t* condition, mtx_t* mutex);
int strata_cnd_timedwait(cnd_t* condition, mtx_t* mutex, const struct timespec* until);
void strata_cnd_destroy(cnd_t* condition);

/* ---- values ---- */
int strata_tss_create(tss_t* key, tss_dtor_t destroy);
void* strata_tss_get(tss_t key);
/* thrd_nomem: not kept. */
int strata_tss_set(tss_t key, void* value);
void strata_tss_delete(tss_t key);

#ifdef __cplusplus
}
#endif

#endif
