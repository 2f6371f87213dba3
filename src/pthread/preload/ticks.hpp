// SPDX-License-Identifier: Apache-2.0
// Preemption of a program that runs as it is: threads that compute and never wait. Such programs
// expect it, with kernel threads.
//
// Each worker has a timer of the kernel's that counts what its OS thread computes. So nothing comes
// while it sleeps; a call of the kernel is not interrupted, for Linux looks at such timers when it
// goes back to the program (from 5.10 on, on x86-64); and exec takes the timer and what it has sent
// away. A tick that finds the thread of the last one still running, with others behind it, makes it
// give way.
//
// Where? Where code of the program itself runs (program_code.hpp), outside of its handlers: then
// nothing below on its stack has a lock that belongs to the OS thread, as those of malloc() and of
// stdio do. Locks of pthreads are the thread's own, and what it has in thread-local variables goes
// with it. So a tick that comes there switches stacks, with all registers on the one that is left.
// One that comes elsewhere is remembered: the thread gives way when it calls the next time
// something by a name of the C library that is ours (forward.cpp), from code of the program.
//
// There, too, what acts on a thread wherever it is finds it, whether or not others wait: handlers
// for pthread_kill(), and cancellation of the asynchronous type.
#pragma once
#include <cstdint>
#include <cstdio>

#include "pthread/record.hpp"

namespace strata::preload {

// In the handler, on any OS thread; `machine`: what the kernel has said of the interrupted code.
// Does not return where that is left by a handler of the program's, or by the thread's
// cancellation.
void on_tick(void* machine);

// While one exists it is a handler of the program that runs below `frame`: what it has interrupted
// may have any lock. It may leave by siglongjmp().
class in_handler {
 public:
  explicit in_handler(const void* frame) noexcept;
  ~in_handler() {
    if (whose_ != nullptr) whose_->handler_frame = before_;
  }
  in_handler(const in_handler&) = delete;
  in_handler& operator=(const in_handler&) = delete;

 private:
  detail::posix::record* whose_ = nullptr;
  std::uintptr_t before_ = 0;
};

// ---- locks that belong to the OS thread, and that a program may have for long ----
void lock_stream(std::FILE* stream);
int try_lock_stream(std::FILE* stream);
void unlock_stream(std::FILE* stream);

}  // namespace strata::preload
