/* SPDX-License-Identifier: Apache-2.0 */
/* With this folder before the system's on the include path, the C library's headers give a program strata's threads under
   POSIX's names: what is declared there is called by its own name and linked as strata_NAME. In C each header here does so
   for the names of the one it stands before, under the conditions (__USE_...) under which that declares them, and declares
   nothing itself. In C++ this one does so for all. docs/pthread.md says what that covers. */
#pragma GCC system_header
#include_next <pthread.h>
#ifndef __cplusplus
#ifndef STRATA_SHIM_PTHREAD_H
#define STRATA_SHIM_PTHREAD_H
#pragma redefine_extname pthread_mutex_init strata_pthread_mutex_init
#pragma redefine_extname pthread_create strata_pthread_create
#pragma redefine_extname pthread_join strata_pthread_join
#pragma redefine_extname pthread_detach strata_pthread_detach
#pragma redefine_extname pthread_exit strata_pthread_exit
#pragma redefine_extname pthread_self strata_pthread_self
#pragma redefine_extname pthread_equal strata_pthread_equal
#pragma redefine_extname pthread_setschedparam strata_pthread_setschedparam
#pragma redefine_extname pthread_getschedparam strata_pthread_getschedparam
#pragma redefine_extname pthread_setschedprio strata_pthread_setschedprio
#pragma redefine_extname pthread_cancel strata_pthread_cancel
#pragma redefine_extname pthread_setcancelstate strata_pthread_setcancelstate
#pragma redefine_extname pthread_setcanceltype strata_pthread_setcanceltype
#pragma redefine_extname pthread_testcancel strata_pthread_testcancel
#pragma redefine_extname pthread_mutex_destroy strata_pthread_mutex_destroy
#pragma redefine_extname pthread_mutex_lock strata_pthread_mutex_lock
#pragma redefine_extname pthread_mutex_trylock strata_pthread_mutex_trylock
#pragma redefine_extname pthread_mutex_unlock strata_pthread_mutex_unlock
#pragma redefine_extname pthread_mutex_getprioceiling strata_pthread_mutex_getprioceiling
#pragma redefine_extname pthread_mutex_setprioceiling strata_pthread_mutex_setprioceiling
#pragma redefine_extname pthread_cond_init strata_pthread_cond_init
#pragma redefine_extname pthread_cond_destroy strata_pthread_cond_destroy
#pragma redefine_extname pthread_cond_wait strata_pthread_cond_wait
#pragma redefine_extname pthread_cond_timedwait strata_pthread_cond_timedwait
#pragma redefine_extname pthread_cond_signal strata_pthread_cond_signal
#pragma redefine_extname pthread_cond_broadcast strata_pthread_cond_broadcast
#pragma redefine_extname pthread_once strata_pthread_once
#pragma redefine_extname pthread_key_create strata_pthread_key_create
#pragma redefine_extname pthread_key_delete strata_pthread_key_delete
#pragma redefine_extname pthread_getspecific strata_pthread_getspecific
#pragma redefine_extname pthread_setspecific strata_pthread_setspecific
#ifdef __USE_UNIX98
#pragma redefine_extname pthread_setconcurrency strata_pthread_setconcurrency
#pragma redefine_extname pthread_getconcurrency strata_pthread_getconcurrency
#endif
#if defined __USE_UNIX98 || defined __USE_XOPEN2K
#pragma redefine_extname pthread_rwlock_init strata_pthread_rwlock_init
#pragma redefine_extname pthread_rwlock_destroy strata_pthread_rwlock_destroy
#pragma redefine_extname pthread_rwlock_rdlock strata_pthread_rwlock_rdlock
#pragma redefine_extname pthread_rwlock_tryrdlock strata_pthread_rwlock_tryrdlock
#pragma redefine_extname pthread_rwlock_wrlock strata_pthread_rwlock_wrlock
#pragma redefine_extname pthread_rwlock_trywrlock strata_pthread_rwlock_trywrlock
#pragma redefine_extname pthread_rwlock_unlock strata_pthread_rwlock_unlock
#endif
#ifdef __USE_XOPEN2K
#pragma redefine_extname pthread_getcpuclockid strata_pthread_getcpuclockid
#pragma redefine_extname pthread_mutex_timedlock strata_pthread_mutex_timedlock
#pragma redefine_extname pthread_barrier_init strata_pthread_barrier_init
#pragma redefine_extname pthread_barrier_destroy strata_pthread_barrier_destroy
#pragma redefine_extname pthread_barrier_wait strata_pthread_barrier_wait
#pragma redefine_extname pthread_spin_init strata_pthread_spin_init
#pragma redefine_extname pthread_spin_destroy strata_pthread_spin_destroy
#pragma redefine_extname pthread_spin_lock strata_pthread_spin_lock
#pragma redefine_extname pthread_spin_trylock strata_pthread_spin_trylock
#pragma redefine_extname pthread_spin_unlock strata_pthread_spin_unlock
#pragma redefine_extname pthread_rwlock_timedrdlock strata_pthread_rwlock_timedrdlock
#pragma redefine_extname pthread_rwlock_timedwrlock strata_pthread_rwlock_timedwrlock
#endif
#ifdef __USE_XOPEN2K8
#pragma redefine_extname pthread_mutex_consistent strata_pthread_mutex_consistent
#endif
#ifdef __USE_GNU
#pragma redefine_extname pthread_tryjoin_np strata_pthread_tryjoin_np
#pragma redefine_extname pthread_timedjoin_np strata_pthread_timedjoin_np
#pragma redefine_extname pthread_clockjoin_np strata_pthread_clockjoin_np
#pragma redefine_extname pthread_setname_np strata_pthread_setname_np
#pragma redefine_extname pthread_getname_np strata_pthread_getname_np
#pragma redefine_extname pthread_getattr_np strata_pthread_getattr_np
#pragma redefine_extname pthread_setattr_default_np strata_pthread_setattr_default_np
#pragma redefine_extname pthread_getattr_default_np strata_pthread_getattr_default_np
#pragma redefine_extname pthread_setaffinity_np strata_pthread_setaffinity_np
#pragma redefine_extname pthread_getaffinity_np strata_pthread_getaffinity_np
#pragma redefine_extname pthread_mutex_clocklock strata_pthread_mutex_clocklock
#pragma redefine_extname pthread_cond_clockwait strata_pthread_cond_clockwait
#pragma redefine_extname pthread_rwlock_clockrdlock strata_pthread_rwlock_clockrdlock
#pragma redefine_extname pthread_rwlock_clockwrlock strata_pthread_rwlock_clockwrlock
/* Old names, which the C library's header gives to what it calls otherwise. */
#define pthread_mutex_consistent_np pthread_mutex_consistent
#define pthread_yield sched_yield
#endif
/* What pthread_cleanup_push() and _pop() expand to. */
#ifndef __EXCEPTIONS
#pragma redefine_extname __pthread_register_cancel strata_pthread_register_cancel
#pragma redefine_extname __pthread_unregister_cancel strata_pthread_unregister_cancel
#ifdef __USE_GNU
#pragma redefine_extname __pthread_register_cancel_defer strata_pthread_register_cancel_defer
#pragma redefine_extname __pthread_unregister_cancel_restore strata_pthread_unregister_cancel_restore
#endif
#pragma redefine_extname __pthread_unwind_next strata_pthread_unwind_next
#endif
#endif
/* Not while the C++ library's own gthr-default.h includes this: it goes on meaning kernel threads. */
#elif !defined STRATA_SHIM_PTHREAD_H && (!defined _GLIBCXX_GCC_GTHR_POSIX_H || defined __GTHREAD_MUTEX_INIT)
#define STRATA_SHIM_PTHREAD_H
/* All that calls pthreads inline is compiled before the names mean something else. */
#include <ios>
#if __cplusplus >= 201103L
#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#endif
#if __cplusplus >= 201402L
#include <shared_mutex>
#endif
#if __cplusplus > 201703L
#include <semaphore>
#endif
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <strata/pthread.h>

/* Old names, which the C library's header gives to what it calls otherwise. */
#define pthread_mutex_consistent_np strata_pthread_mutex_consistent
#define pthread_yield strata_sched_yield

#define pthread_mutex_init strata_pthread_mutex_init
#define pthread_create strata_pthread_create
#define pthread_join strata_pthread_join
#define pthread_tryjoin_np strata_pthread_tryjoin_np
#define pthread_timedjoin_np strata_pthread_timedjoin_np
#define pthread_clockjoin_np strata_pthread_clockjoin_np
#define pthread_detach strata_pthread_detach
#define pthread_exit strata_pthread_exit
#define pthread_self strata_pthread_self
#define pthread_equal strata_pthread_equal
#define pthread_setname_np strata_pthread_setname_np
#define pthread_getname_np strata_pthread_getname_np
#define pthread_getattr_np strata_pthread_getattr_np
#define pthread_setattr_default_np strata_pthread_setattr_default_np
#define pthread_getattr_default_np strata_pthread_getattr_default_np
#define pthread_setaffinity_np strata_pthread_setaffinity_np
#define pthread_getaffinity_np strata_pthread_getaffinity_np
#define pthread_setschedparam strata_pthread_setschedparam
#define pthread_getschedparam strata_pthread_getschedparam
#define pthread_setschedprio strata_pthread_setschedprio
#define pthread_setconcurrency strata_pthread_setconcurrency
#define pthread_getconcurrency strata_pthread_getconcurrency
#define pthread_getcpuclockid strata_pthread_getcpuclockid
#define pthread_cancel strata_pthread_cancel
#define pthread_setcancelstate strata_pthread_setcancelstate
#define pthread_setcanceltype strata_pthread_setcanceltype
#define pthread_testcancel strata_pthread_testcancel
#define pthread_kill strata_pthread_kill
#define pthread_sigqueue strata_pthread_sigqueue
#define pthread_sigmask strata_pthread_sigmask
#define sigprocmask strata_sigprocmask
#define sigpending strata_sigpending
#define sigwaitinfo strata_sigwaitinfo
#define sigtimedwait strata_sigtimedwait
#define sigsuspend strata_sigsuspend
#define pthread_mutex_destroy strata_pthread_mutex_destroy
#define pthread_mutex_lock strata_pthread_mutex_lock
#define pthread_mutex_trylock strata_pthread_mutex_trylock
#define pthread_mutex_timedlock strata_pthread_mutex_timedlock
#define pthread_mutex_clocklock strata_pthread_mutex_clocklock
#define pthread_mutex_unlock strata_pthread_mutex_unlock
#define pthread_mutex_consistent strata_pthread_mutex_consistent
#define pthread_mutex_getprioceiling strata_pthread_mutex_getprioceiling
#define pthread_mutex_setprioceiling strata_pthread_mutex_setprioceiling
#define pthread_cond_init strata_pthread_cond_init
#define pthread_cond_destroy strata_pthread_cond_destroy
#define pthread_cond_wait strata_pthread_cond_wait
#define pthread_cond_timedwait strata_pthread_cond_timedwait
#define pthread_cond_clockwait strata_pthread_cond_clockwait
#define pthread_cond_signal strata_pthread_cond_signal
#define pthread_cond_broadcast strata_pthread_cond_broadcast
#define pthread_rwlock_init strata_pthread_rwlock_init
#define pthread_rwlock_destroy strata_pthread_rwlock_destroy
#define pthread_rwlock_rdlock strata_pthread_rwlock_rdlock
#define pthread_rwlock_tryrdlock strata_pthread_rwlock_tryrdlock
#define pthread_rwlock_timedrdlock strata_pthread_rwlock_timedrdlock
#define pthread_rwlock_clockrdlock strata_pthread_rwlock_clockrdlock
#define pthread_rwlock_wrlock strata_pthread_rwlock_wrlock
#define pthread_rwlock_trywrlock strata_pthread_rwlock_trywrlock
#define pthread_rwlock_timedwrlock strata_pthread_rwlock_timedwrlock
#define pthread_rwlock_clockwrlock strata_pthread_rwlock_clockwrlock
#define pthread_rwlock_unlock strata_pthread_rwlock_unlock
#define pthread_barrier_init strata_pthread_barrier_init
#define pthread_barrier_destroy strata_pthread_barrier_destroy
#define pthread_barrier_wait strata_pthread_barrier_wait
#define pthread_spin_init strata_pthread_spin_init
#define pthread_spin_destroy strata_pthread_spin_destroy
#define pthread_spin_lock strata_pthread_spin_lock
#define pthread_spin_trylock strata_pthread_spin_trylock
#define pthread_spin_unlock strata_pthread_spin_unlock
#define pthread_once strata_pthread_once
#define pthread_key_create strata_pthread_key_create
#define pthread_key_delete strata_pthread_key_delete
#define pthread_getspecific strata_pthread_getspecific
#define pthread_setspecific strata_pthread_setspecific
#define sem_init strata_sem_init
#define sem_destroy strata_sem_destroy
#define sem_wait strata_sem_wait
#define sem_trywait strata_sem_trywait
#define sem_timedwait strata_sem_timedwait
#define sem_clockwait strata_sem_clockwait
#define sem_post strata_sem_post
#define sem_getvalue strata_sem_getvalue
#define sched_yield strata_sched_yield
#define nanosleep strata_nanosleep
#define clock_nanosleep strata_clock_nanosleep
#define usleep strata_usleep
#define posix_spawn strata_posix_spawn
#define posix_spawnp strata_posix_spawnp
#define execv strata_execv
#define execve strata_execve
#define execvp strata_execvp
#define execvpe strata_execvpe
#define fexecve strata_fexecve
#define execl strata_execl
#define execlp strata_execlp
#define execle strata_execle
/* These two call pthread_setcanceltype() in a class of the C library's header. */
#undef pthread_cleanup_push_defer_np
#undef pthread_cleanup_pop_restore_np
#define pthread_cleanup_push_defer_np(routine, argument) \
  pthread_cleanup_push(routine, argument);               \
  int strata_cancel_type_;                               \
  strata_pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &strata_cancel_type_)
#define pthread_cleanup_pop_restore_np(execute)                   \
  strata_pthread_setcanceltype(strata_cancel_type_, __null); \
  pthread_cleanup_pop(execute)
/* `sleep`, `pause`, `system` and `popen` are too common words for macros: C++ programs call strata_sleep(), ... . */
#endif
