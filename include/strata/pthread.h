/* SPDX-License-Identifier: Apache-2.0 */
/* POSIX threads on strata's workers, for C and C++. Each function is its namesake of POSIX with
   `strata_` in front: the same arguments, results and errors, on the C library's own types, so
   static initialisers and the functions on attributes (pthread_attr_*, pthread_mutexattr_*,
   pthread_condattr_*, pthread_rwlockattr_*, pthread_barrierattr_*) stay the C library's. An object
   belongs to one side: what strata_pthread_mutex_init() has made, or a static initialiser, is used
   with strata_ functions alone.

     pthread_t t;
     int error = strata_pthread_create(&t, NULL, work, argument);
     if (error == 0) error = strata_pthread_join(t, NULL);

   Called within strata::runtime::run(), a thread is made in that runtime. Otherwise the first
   strata_pthread_create() starts one for the process, with the settings of the STRATA_* variables;
   threads from outside may call everything here, and block where a thread of ours is suspended.
   docs/pthread.md says what differs from kernel threads.

   What takes a type that the C library's headers do not have (those of clocks, read-write locks,
   barriers, spin locks and signals' values, with `-std=c99` and no feature macros, say) is not
   declared here either. */
#ifndef STRATA_PTHREAD_H
#define STRATA_PTHREAD_H

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <stdio.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- threads ---- */
/* EAGAIN: no memory, no room for another stack (threads that end make some) or, for the first one,
   no OS threads for workers. EINVAL: the attributes. The stack is the runtime's usual one (outside
   run(): as large as kernel threads have, by `ulimit -s`; see docs/pthread.md) unless the
   attributes, or the defaults below, ask for another size, or give one (pthread_attr_setstack()):
   the thread's functions, handlers and destructors run there, and it is the program's again when
   the thread has been joined. */
int strata_pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                          void* (*start)(void*), void* argument);
/* EDEADLK: the calling thread, or one that joins it already. */
int strata_pthread_join(pthread_t thread, void** result);
int strata_pthread_tryjoin_np(pthread_t thread, void** result);
int strata_pthread_timedjoin_np(pthread_t thread, void** result, const struct timespec* until);
#ifdef __clockid_t_defined
int strata_pthread_clockjoin_np(pthread_t thread, void** result, clockid_t clock,
                                const struct timespec* until);
#endif
int strata_pthread_detach(pthread_t thread);
/* Runs cleanup handlers, C++ destructors and the destructors of keys. In main() it ends main()
   alone; the process ends, with status 0, when its last thread has. */
void strata_pthread_exit(void* result) __attribute__((noreturn));
pthread_t strata_pthread_self(void);
int strata_pthread_equal(pthread_t a, pthread_t b);
/* The name is also what dumps, an overflow of the stack and an exception that leaves the thread are
 * told with. */
int strata_pthread_setname_np(pthread_t thread, const char* name);
int strata_pthread_getname_np(pthread_t thread, char* name, size_t bytes);
/* Stack, detach state and scheduling of the calling thread or of one that runs, and the guard that
 * it has asked for; its processors are not told. One that has not begun has no stack yet, unless it
 * was given one: there is its size alone. */
int strata_pthread_getattr_np(pthread_t thread, pthread_attr_t* attributes);
/* What threads have that are made without attributes, from now on; those of the C library take over
   the sizes alone. EINVAL: the attributes have a stack, or what the C library does not have. A size
   of stack that the runtime's usual one has is that one. Processors are not kept. */
int strata_pthread_setattr_default_np(const pthread_attr_t* attributes);
int strata_pthread_getattr_default_np(pthread_attr_t* attributes);
/* Threads run on any worker, whatever is set: set checks as the kernel does (EINVAL: no processor
   that it may use), and remembers the set for the programs that the thread starts and the threads
   that it makes. ENOMEM: not remembered. get tells where workers may run. */
int strata_pthread_setaffinity_np(pthread_t thread, size_t bytes, const cpu_set_t* cpus);
int strata_pthread_getaffinity_np(pthread_t thread, size_t bytes, cpu_set_t* cpus);
/* Checked as the kernel does (EINVAL, EPERM), remembered, told by get, inherited, and otherwise
 * without effect. */
int strata_pthread_setschedparam(pthread_t thread, int policy,
                                 const struct sched_param* parameters);
int strata_pthread_getschedparam(pthread_t thread, int* policy, struct sched_param* parameters);
int strata_pthread_setschedprio(pthread_t thread, int priority);
int strata_pthread_setconcurrency(int level);
int strata_pthread_getconcurrency(void);
#ifdef __clockid_t_defined
/* For itself the clock of the worker that runs it. ENOENT: another lightweight thread has none of
 * its own. */
int strata_pthread_getcpuclockid(pthread_t thread, clockid_t* clock);
#endif

/* ---- cancellation: deferred ---- */
/* Cancellation points: joins, waits on condition variables and semaphores, sleeping, waits for
 * signals, testcancel. */
int strata_pthread_cancel(pthread_t thread);
int strata_pthread_setcancelstate(int state, int* before);
/* PTHREAD_CANCEL_ASYNCHRONOUS: acts at once when it is set, and ends waits for locks, too; a thread
   that computes is reached at its next wait. */
int strata_pthread_setcanceltype(int type, int* before);
void strata_pthread_testcancel(void);

/* ---- signals ---- */
/* What strata_pthread_kill() and strata_sigwait() know of the thread. Signals for the process that
   no thread from outside takes are given to a thread here that has unblocked them: its wait ends,
   and it runs the handler; one that does not come to it within some milliseconds is represented by
   an OS thread. */
int strata_pthread_sigmask(int how, const sigset_t* set, sigset_t* before);
int strata_sigprocmask(int how, const sigset_t* set, sigset_t* before);
/* What the calling thread has been sent and has blocked, and what waits for the process. */
int strata_sigpending(sigset_t* set);
/* Another thread runs the handler when it waits, yields or comes back from a wait, at its next
 * cancellation point at the latest. */
int strata_pthread_kill(pthread_t thread, int number);
#ifdef __USE_POSIX199309
/* The value reaches a handler of the thread itself. */
int strata_pthread_sigqueue(pthread_t thread, int number, union sigval value);
#endif
int strata_raise(int number);
int strata_sigwait(const sigset_t* set, int* number);
#ifdef __siginfo_t_defined
/* EINTR when a handler has run meanwhile. */
int strata_sigwaitinfo(const sigset_t* set, siginfo_t* info);
int strata_sigtimedwait(const sigset_t* set, siginfo_t* info, const struct timespec* timeout);
#endif
/* Until a handler has run. */
int strata_sigsuspend(const sigset_t* mask);
int strata_pause(void);

/* ---- mutexes: normal, errorcheck, recursive, and each of them robust ---- */
/* Priorities have no effect here, and so a protocol for them has none but that who is above the
   ceiling of a mutex (PTHREAD_PRIO_PROTECT) gets EINVAL for locking it. ENOTSUP: that protocol for
   a robust one. */
int strata_pthread_mutex_init(pthread_mutex_t* mutex, const pthread_mutexattr_t* attributes);
int strata_pthread_mutex_destroy(pthread_mutex_t* mutex);
/* EOWNERDEAD, and locked: its owner has ended with it; the same where a wait on a condition
   variable locks it again. ENOMEM: no room to note that the caller has this robust one. */
int strata_pthread_mutex_lock(pthread_mutex_t* mutex);
int strata_pthread_mutex_trylock(pthread_mutex_t* mutex);
int strata_pthread_mutex_timedlock(pthread_mutex_t* mutex, const struct timespec* until);
#ifdef __clockid_t_defined
int strata_pthread_mutex_clocklock(pthread_mutex_t* mutex, clockid_t clock,
                                   const struct timespec* until);
#endif
int strata_pthread_mutex_unlock(pthread_mutex_t* mutex);
/* By the owner after EOWNERDEAD; unlocked without it the mutex gives ENOTRECOVERABLE from then on.
 * EINVAL: it is not inconsistent, or the caller has it not. */
int strata_pthread_mutex_consistent(pthread_mutex_t* mutex);
/* EINVAL, both: it has no ceiling. set locks the mutex for it, whatever the caller's priority, and
   so may wait; EDEADLK as for locking. */
int strata_pthread_mutex_getprioceiling(const pthread_mutex_t* mutex, int* ceiling);
int strata_pthread_mutex_setprioceiling(pthread_mutex_t* mutex, int ceiling, int* before);

/* ---- condition variables ---- */
int strata_pthread_cond_init(pthread_cond_t* cond, const pthread_condattr_t* attributes);
/* EBUSY while somebody waits for it; one that processes share: waits until nobody does. */
int strata_pthread_cond_destroy(pthread_cond_t* cond);
int strata_pthread_cond_wait(pthread_cond_t* cond, pthread_mutex_t* mutex);
int strata_pthread_cond_timedwait(pthread_cond_t* cond, pthread_mutex_t* mutex,
                                  const struct timespec* until);
#ifdef __clockid_t_defined
int strata_pthread_cond_clockwait(pthread_cond_t* cond, pthread_mutex_t* mutex, clockid_t clock,
                                  const struct timespec* until);
#endif
int strata_pthread_cond_signal(pthread_cond_t* cond);
int strata_pthread_cond_broadcast(pthread_cond_t* cond);

/* ---- read-write locks ---- */
#if defined __USE_UNIX98 || defined __USE_XOPEN2K
int strata_pthread_rwlock_init(pthread_rwlock_t* lock, const pthread_rwlockattr_t* attributes);
int strata_pthread_rwlock_destroy(pthread_rwlock_t* lock);
int strata_pthread_rwlock_rdlock(pthread_rwlock_t* lock);
int strata_pthread_rwlock_tryrdlock(pthread_rwlock_t* lock);
int strata_pthread_rwlock_timedrdlock(pthread_rwlock_t* lock, const struct timespec* until);
int strata_pthread_rwlock_wrlock(pthread_rwlock_t* lock);
int strata_pthread_rwlock_trywrlock(pthread_rwlock_t* lock);
int strata_pthread_rwlock_timedwrlock(pthread_rwlock_t* lock, const struct timespec* until);
int strata_pthread_rwlock_unlock(pthread_rwlock_t* lock);
#ifdef __clockid_t_defined
int strata_pthread_rwlock_clockrdlock(pthread_rwlock_t* lock, clockid_t clock,
                                      const struct timespec* until);
int strata_pthread_rwlock_clockwrlock(pthread_rwlock_t* lock, clockid_t clock,
                                      const struct timespec* until);
#endif
#endif

/* ---- barriers, spin locks, once ---- */
#ifdef __USE_XOPEN2K
int strata_pthread_barrier_init(pthread_barrier_t* barrier, const pthread_barrierattr_t* attributes,
                                unsigned count);
int strata_pthread_barrier_destroy(pthread_barrier_t* barrier);
int strata_pthread_barrier_wait(pthread_barrier_t* barrier);
int strata_pthread_spin_init(pthread_spinlock_t* lock, int shared);
int strata_pthread_spin_destroy(pthread_spinlock_t* lock);
/* Lets other threads of its worker run when it takes long. */
int strata_pthread_spin_lock(pthread_spinlock_t* lock);
int strata_pthread_spin_trylock(pthread_spinlock_t* lock);
int strata_pthread_spin_unlock(pthread_spinlock_t* lock);
#endif
int strata_pthread_once(pthread_once_t* once, void (*initialise)(void));

/* ---- keys ---- */
int strata_pthread_key_create(pthread_key_t* key, void (*destroy)(void*));
int strata_pthread_key_delete(pthread_key_t key);
void* strata_pthread_getspecific(pthread_key_t key);
int strata_pthread_setspecific(pthread_key_t key, const void* value);

/* ---- semaphores: unnamed; those of sem_open() and those that processes share work too, by looking
 * again and again ---- */
/* The waits end with EINTR as those of POSIX do, where a handler of the calling thread has run. */
int strata_sem_init(sem_t* semaphore, int shared, unsigned value);
/* EBUSY while somebody waits for it, unless processes share it. */
int strata_sem_destroy(sem_t* semaphore);
int strata_sem_wait(sem_t* semaphore);
int strata_sem_trywait(sem_t* semaphore);
int strata_sem_timedwait(sem_t* semaphore, const struct timespec* until);
#ifdef __clockid_t_defined
int strata_sem_clockwait(sem_t* semaphore, clockid_t clock, const struct timespec* until);
#endif
int strata_sem_post(sem_t* semaphore);
int strata_sem_getvalue(sem_t* semaphore, int* value);

/* ---- time ---- */
int strata_sched_yield(void);
int strata_nanosleep(const struct timespec* time, struct timespec* left);
#ifdef __clockid_t_defined
int strata_clock_nanosleep(clockid_t clock, int flags, const struct timespec* time,
                           struct timespec* left);
#endif
int strata_usleep(unsigned microseconds);
unsigned strata_sleep(unsigned seconds);

/* ---- starting programs ---- */
/* With the signals blocked that the calling thread has blocked. Its worker blocks all. */
int strata_posix_spawn(pid_t* process, const char* path, const posix_spawn_file_actions_t* actions,
                       const posix_spawnattr_t* attributes, char* const arguments[],
                       char* const environment[]);
int strata_posix_spawnp(pid_t* process, const char* file, const posix_spawn_file_actions_t* actions,
                        const posix_spawnattr_t* attributes, char* const arguments[],
                        char* const environment[]);
/* Suspends the thread until the command has ended. A point of cancellation, before it is started
   and when it has ended. */
int strata_system(const char* command);
FILE* strata_popen(const char* command, const char* mode);
/* Suspends the thread until the program has ended. */
int strata_pclose(FILE* stream);
/* After vfork(); after fork() the child has blocked what the thread has, whatever it calls. */
int strata_execv(const char* path, char* const arguments[]);
int strata_execve(const char* path, char* const arguments[], char* const environment[]);
int strata_execvp(const char* file, char* const arguments[]);
int strata_execvpe(const char* file, char* const arguments[], char* const environment[]);
int strata_fexecve(int fd, char* const arguments[], char* const environment[]);
/* The arguments end with a null pointer, which execle()'s environment follows. */
int strata_execl(const char* path, const char* first, ...);
int strata_execlp(const char* file, const char* first, ...);
int strata_execle(const char* path, const char* first, ...);

/* ---- errno ---- */
/* Where it is now. The C library declares the function behind `errno` const, so compilers keep the
   address over calls after which another OS thread runs the caller; this one they ask again. The
   folder strata/shim makes `errno` mean this. */
int* strata_errno_location(void);

/* ---- what the C library's pthread_cleanup_push() and _pop() expand to in C ---- */
struct strata_cleanup { /* as the C library's struct _pthread_cleanup_buffer */
  void (*routine)(void*);
  void* argument;
  int canceltype;
  struct strata_cleanup* before;
};
/* The handler lies in the caller's frame. */
void strata_cleanup_push(struct strata_cleanup* handler, void (*routine)(void*), void* argument);
void strata_cleanup_pop(struct strata_cleanup* handler, int execute);
/* Of a `__pthread_unwind_buf_t`. */
void strata_pthread_register_cancel(void* buffer);
void strata_pthread_unregister_cancel(void* buffer);
void strata_pthread_register_cancel_defer(void* buffer);
void strata_pthread_unregister_cancel_restore(void* buffer);
void strata_pthread_unwind_next(void* buffer) __attribute__((noreturn));

#ifdef __cplusplus
}

/* A handler that runs when the thread is cancelled or exits, when its scope is left, or never:
     strata_pthread_cleanup_push(release, thing);  ...  strata_pthread_cleanup_pop(1); */
struct strata_cleanup_scope {
  void (*routine)(void*);
  void* argument;
  bool execute;
  strata_cleanup_scope(void (*r)(void*), void* a) : routine(r), argument(a), execute(true) {}
  ~strata_cleanup_scope() {
    if (execute) routine(argument);
  }

 private: /* and nowhere: C++98 has no `= delete` */
  strata_cleanup_scope(const strata_cleanup_scope&);
  strata_cleanup_scope& operator=(const strata_cleanup_scope&);
};
#define strata_pthread_cleanup_push(routine, argument) \
  do {                                                 \
  strata_cleanup_scope strata_scope_((routine), (argument))
#define strata_pthread_cleanup_pop(run) \
  strata_scope_.execute = (run) != 0;   \
  }                                     \
  while (0)
#else
#define strata_pthread_cleanup_push(routine, argument) \
  do {                                                 \
    struct strata_cleanup strata_scope_;               \
  strata_cleanup_push(&strata_scope_, (routine), (argument))
#define strata_pthread_cleanup_pop(run)      \
  strata_cleanup_pop(&strata_scope_, (run)); \
  }                                          \
  while (0)
#endif

#endif
