// SPDX-License-Identifier: Apache-2.0
// As the C library does it: a forced unwinding, which C++ code may look at (catch (...) must throw
// on) but not stop, and which visits frames of C, where cleanup handlers lie that were registered
// with a jump buffer. A thread that the C library has made leaves by that itself, and what is
// registered here for one is handed on: so nobody has to put our handlers and those of code that
// knows nothing of us in order, and pthread_cancel() as the C library has it runs ours, too.
#include "pthread/exit.hpp"

#include <pthread.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "pthread/fork.hpp"
#include "pthread/own_stack.hpp"
#include "pthread/wait.hpp"
#include "strata/detail/thread_core.hpp"

// Of the C library: what <pthread.h> declares for C alone, or no longer.
extern "C" {
void _pthread_cleanup_push(void* handler, void (*routine)(void*), void* argument);
void _pthread_cleanup_pop(void* handler, int execute);
void __pthread_register_cancel(void* buffer);
void __pthread_unregister_cancel(void* buffer);
[[noreturn]] void __pthread_unwind_next(void* buffer);
}

namespace strata::detail::posix {
namespace {

// What the C library puts into a __pthread_unwind_buf_t behind the registers. Where the thread
// leaves natively the first three are the C library's; canceltype is behind them, in the fourth.
struct buffer {
  __jmp_buf registers;
  int mask_was_saved;
  struct {
    void* before;
    void* of_c_library[2];
    int canceltype;
  } ours;
};
static_assert(sizeof(buffer::ours) <= 4 * sizeof(void*));

void forgotten(_Unwind_Reason_Code, _Unwind_Exception*) {
  std::fputs("strata: a catch (...) did not throw a thread's exit on\n", stderr);
  std::abort();
}

// Whether what lies at `outer` is further out than what lies at `inner`. What the thread runs on
// another stack is called from its own, wherever that lies.
bool is_further_out(std::uintptr_t outer, std::uintptr_t inner) noexcept {
  const bool is_own = is_on_own_stack(outer);
  return is_own != is_on_own_stack(inner) ? is_own : outer > inner;
}

// Before each frame that is to be left. `frame` is where that frame begins, so what lies below has
// been left already.
_Unwind_Reason_Code visit(int, _Unwind_Action actions, _Unwind_Exception_Class, _Unwind_Exception*,
                          _Unwind_Context* context, void* argument) {
  auto& r = *static_cast<record*>(argument);
  const auto frame = static_cast<std::uintptr_t>(_Unwind_GetCFA(context));
  const bool end = (actions & _UA_END_OF_STACK) != 0;
  const auto at = [](const void* what) { return reinterpret_cast<std::uintptr_t>(what); };
  const auto left = [&](const void* what) {
    return what != nullptr && (end || is_further_out(frame, at(what)));
  };
  // Of the two kinds the inner one first.
  while (left(r.handlers) &&
         (r.unwind_buffer == nullptr || is_further_out(at(r.unwind_buffer), at(r.handlers)))) {
    const strata_cleanup& h = *std::exchange(r.handlers, r.handlers->before);
    h.routine(h.argument);
  }
  if (left(r.unwind_buffer)) {
    // Runs the handler, and comes back by strata_pthread_unwind_next().
    auto* const b = static_cast<__cancel_jmp_buf_tag*>(r.unwind_buffer);
    std::longjmp(reinterpret_cast<__jmp_buf_tag*>(b), 1);
  }
  if (left(r.base)) {
    // Here, below its frames: others may use what lies there as long as there are any.
    if (r.is_main || r.is_os_thread) end_process_with(&r);
    std::longjmp(*r.base, 1);
  }
  if (end) {
    // Main has ended outside a runtime, and nothing of its stack is left that matters.
    if (is_process_thread()) end_process_with(&r);
    std::fputs("strata: pthread_exit() found no end of the thread\n", stderr);
    std::abort();
  }
  return _URC_NO_REASON;
}

[[noreturn]] void unwind(record& r) {
  std::memcpy(&r.unwinding.exception_class, "STRATA\0", sizeof r.unwinding.exception_class);
  r.unwinding.exception_cleanup = &forgotten;
  _Unwind_ForcedUnwind(&r.unwinding, &visit, &r);
  std::fputs("strata: the stack of a thread that exits cannot be unwound\n", stderr);
  std::abort();
}

// Before somebody else unwinds the stack who knows nothing of these.
void run_handlers(record& r) {
  while (r.handlers != nullptr) {
    const strata_cleanup& h = *std::exchange(r.handlers, r.handlers->before);
    h.routine(h.argument);
  }
}

// Whether a fork has gone on on another stack than that of `base`, whose frames end in the fork: an
// exception gets over that, and the C library's unwinding does not.
bool has_left_its_stack() noexcept {
  const worker& w = this_worker();
  const stack* const s = w.owner != nullptr ? static_cast<const place&>(w).current : nullptr;
  return s != nullptr && s->self != s;
}

// Whether it was left by leave_thread() in such a fork.
[[gnu::noinline]] bool call_start(record& r) {
  try {
    r.result = r.start(r.argument);
    return false;
  } catch (const thread_exit&) {
    if (!r.leaving) throw;  // of another task, which has run a branch of ours
    if (r.is_main || r.is_os_thread) end_process_with(&r);
    return true;
  }
}

}  // namespace

void leave_thread(record& r, void* result) {
  r.result = result;
  r.leaving = true;
  update_asynchronous(r);
  if (r.leaves_natively) pthread_exit(result);
  if (r.base != nullptr && !has_left_its_stack()) unwind(r);
  // Not begun by us: a thread of strata/thread.hpp, or the root of run(), which an exception ends;
  // or begun on another stack.
  if (!r.is_os_thread) {
    run_handlers(r);
    throw thread_exit{};
  }
  unwind(r);
}

[[gnu::noinline]] bool run_to_exit(record& r) {
  std::jmp_buf base;
  record* volatile const mine = &r;
  if (_setjmp(base) == 0) {
    mine->base = &base;
    const bool left = call_start(*mine);
    mine->base = nullptr;
    return left;
  }
  mine->base = nullptr;
  return true;
}

}  // namespace strata::detail::posix

using namespace strata::detail;
using namespace strata::detail::posix;

extern "C" {

void strata_pthread_exit(void* result) { leave_thread(self(), result); }

void strata_cleanup_push(strata_cleanup* handler, void (*routine)(void*), void* argument) {
  record& r = self();
  if (r.leaves_natively) {
    _pthread_cleanup_push(handler, routine, argument);
    return;
  }
  handler->routine = routine;
  handler->argument = argument;
  handler->before = r.handlers;
  r.handlers = handler;
}

void strata_cleanup_pop(strata_cleanup* handler, int execute) {
  record& r = self();
  if (r.leaves_natively) {
    _pthread_cleanup_pop(handler, execute);
    return;
  }
  r.handlers = handler->before;
  if (execute != 0) handler->routine(handler->argument);
}

void strata_pthread_register_cancel(void* raw) {
  record& r = self();
  if (r.leaves_natively) {
    __pthread_register_cancel(raw);
    return;
  }
  static_cast<buffer*>(raw)->ours.before = r.unwind_buffer;
  r.unwind_buffer = raw;
}

void strata_pthread_unregister_cancel(void* raw) {
  record& r = self();
  if (r.leaves_natively) {
    __pthread_unregister_cancel(raw);
    return;
  }
  r.unwind_buffer = static_cast<buffer*>(raw)->ours.before;
}

void strata_pthread_register_cancel_defer(void* raw) {
  strata_pthread_register_cancel(raw);
  strata_pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED,
                               &static_cast<buffer*>(raw)->ours.canceltype);
}

void strata_pthread_unregister_cancel_restore(void* raw) {
  strata_pthread_unregister_cancel(raw);
  strata_pthread_setcanceltype(static_cast<buffer*>(raw)->ours.canceltype, nullptr);
}

void strata_pthread_unwind_next(void* raw) {
  record& r = self();
  if (r.leaves_natively) __pthread_unwind_next(raw);
  r.unwind_buffer = static_cast<buffer*>(raw)->ours.before;
  unwind(r);
}
}
