// SPDX-License-Identifier: Apache-2.0
// The program's signal handlers never run in the middle of the runtime. The kernel calls one of
// ours, on whatever OS thread it has chosen: where main() is what has been interrupted, and not in
// a section of the runtime, the program's handler runs at once, as natively; everywhere else the
// signal is left to the taker (pthread/signal_taker.hpp), which gives it to a thread.
#pragma once
#include <signal.h>
#include <sys/time.h>

#include <ctime>

namespace strata::preload {

// sigaction(), and what is made of it: signal(), bsd_signal(), ssignal(); sysv_signal(); sigset();
// sigignore(); siginterrupt().
int set_action(int number, const struct sigaction* action, struct sigaction* before);
sighandler_t set_handler(int number, sighandler_t handler);
sighandler_t set_handler_once(int number, sighandler_t handler);
sighandler_t set_disposition(int number, sighandler_t disposition);
int ignore_signal(int number);
int set_interrupts(int number, int interrupts);
// sighold(), sigrelse(), and sigpause() as X/Open has it.
int hold_signal(int number);
int release_signal(int number);
int await_signal(int number);

// alarm(), setitimer(), timer_settime() and timer_delete(): what the former timer had sent to
// main() is handled when they return.
unsigned set_alarm(unsigned seconds);
int set_interval_timer(__itimer_which_t which, const itimerval* time, itimerval* before);
int set_timer(timer_t timer, int flags, const itimerspec* time, itimerspec* before);
int delete_timer(timer_t timer);

// By main(), at the end of a call that may have sent it a signal, or kept one from coming: of the
// process's signals what has come by now is handled, as natively when a system call returns.
void settle();

// The runtime has begun: handlers that the program's constructors have set are heeded from now on.
void heed_handlers_set_before();
// Where main() runs, in no section of the runtime: handlers that there are may interrupt it there.
// Without handlers it has no need of that, and each of its waits is shorter.
void let_handlers_interrupt_main();

}  // namespace strata::preload
