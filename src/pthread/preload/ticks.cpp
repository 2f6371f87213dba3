// SPDX-License-Identifier: Apache-2.0
#include "pthread/preload/ticks.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <clocale>
#include <cstdint>

#include "context/interrupted.hpp"
#include "context/program_locals.hpp"
#include "pthread/fork.hpp"
#include "pthread/preload/native.hpp"
#include "pthread/preload/own_signal.hpp"
#include "pthread/preload/program_code.hpp"
#include "pthread/wait.hpp"
#include "sched/scheduler.hpp"

namespace strata::preload {
namespace {

namespace posix = detail::posix;

// What is called from here on, and the thread-local variables that are kept on the stack.
std::uintptr_t needed_bytes() noexcept {
  return 8 * 1024 + std::min(detail::program_locals().bytes(), detail::program_locals_on_stack_max);
}

// Of this OS thread; of its place when the last tick came. Relaxed: by itself, in the handler, too.
thread_local constinit std::atomic<std::uint64_t> steps_at_tick
    __attribute__((tls_model("initial-exec"))){0};

// Null: no thread of ours runs here.
detail::place* place_of_thread() noexcept {
  detail::worker& w = detail::this_worker();
  auto* const p = static_cast<detail::place*>(w.owner != nullptr ? &w : nullptr);
  return p != nullptr && p->current != nullptr ? p : nullptr;
}

bool is_due(detail::place& p) noexcept {
  std::uint64_t steps = steps_at_tick.load(std::memory_order_relaxed);
  const bool due = p.owner->has_run_for_long(p, steps);
  steps_at_tick.store(steps, std::memory_order_relaxed);
  return due;
}

bool holds(const detail::stack& s, std::uintptr_t address) noexcept {
  const auto bottom = reinterpret_cast<std::uintptr_t>(s.bottom);
  return bottom <= address && address < bottom + s.bytes;
}

// What interrupted code, or a caller, has on the stack lies above `frame`.
bool is_in_handler(posix::record& r, std::uintptr_t frame) noexcept {
  if (frame < r.handler_frame) return true;
  r.handler_frame = 0;  // it has been left by siglongjmp()
  return false;
}

// Not on a stack that the program has made for itself: who knows how large that is. A locale of
// uselocale() is the OS thread's.
bool may_be_left(const detail::place& p, std::uintptr_t at, std::uintptr_t frame) noexcept {
  if (!is_program_code(at) || !holds(*p.current, frame) ||
      !holds(*p.current, detail::stack_pointer() - needed_bytes()))
    return false;
  posix::record* const r = posix::self_if_any();
  return r != nullptr && !is_in_handler(*r, frame) && r->streams_held == 0 &&
         r->waits_in_kernel == 0 && !is_native() && uselocale(nullptr) == LC_GLOBAL_LOCALE;
}

[[gnu::noinline]] int read_errno_of_tick() noexcept { return errno; }
[[gnu::noinline]] void write_errno_of_tick(int error) noexcept { errno = error; }

void note_turn(bool is_due) noexcept {
  const int depth = native_depth.load(std::memory_order_relaxed) & ~turn_is_due;
  native_depth.store(is_due ? depth | turn_is_due : depth, std::memory_order_relaxed);
}

// What acts on a thread wherever it is: a handler of pthread_kill(), and cancellation of the
// asynchronous type.
bool ends_by_cancellation(const posix::record& r) noexcept {
  return r.more.heeds_all.load(std::memory_order_relaxed) && posix::has_to_leave(r);
}
bool has_something_come() noexcept {
  const posix::record* const r = posix::self_if_any();
  return r != nullptr &&
         (r->more.signalled.load(std::memory_order_relaxed) || ends_by_cancellation(*r));
}
// The same wherever it is, also in the runtime, which may know little of it: it may have.
bool may_something_have_come(const detail::place& p) noexcept {
  const auto* const b = static_cast<const detail::thread_block*>(p.current->thread);
  const detail::thread_extras* const e = b != nullptr ? b->extras : nullptr;
  return e != nullptr && (e->signalled.load(std::memory_order_relaxed) ||
                          (e->heeds_all.load(std::memory_order_relaxed) &&
                           e->interrupted.load(std::memory_order_relaxed)));
}

// Where the caller may be left. May not return. What has been remembered is done by that.
void take_turn(detail::place& p, bool gives_way) {
  note_turn(false);
  if (gives_way) p.give_way();
  if (!has_something_come()) return;
  posix::act_on_signals();
  if (ends_by_cancellation(posix::self())) posix::act_on_cancellation();
}

}  // namespace

void on_tick(void* machine) {
  detail::place* const p = place_of_thread();
  if (p == nullptr) return;
  const bool gives_way = is_due(*p);
  const detail::interrupted i = detail::interrupted_by(machine);
  if (!gives_way && !may_something_have_come(*p)) return;
  if (!may_be_left(*p, i.at, i.stack)) return note_turn(true);
  if (!gives_way && !has_something_come()) return;
  const int error = read_errno_of_tick();
  take_turn(*p, gives_way);
  detail::keep_what_is_now(machine);
  write_errno_of_tick(error);
}

// Also in handlers, and in the child of a vfork(), which has its parent's stack and variables.
[[gnu::noinline]] bool calls_natively(const void* caller) {
  if (is_native()) return true;
  detail::place* const p = place_of_thread();
  const bool gives_way = p != nullptr && is_due(*p);
  if (p == nullptr || (!gives_way && !has_something_come())) {
    note_turn(false);
    return false;
  }
  if (!may_be_left(*p, reinterpret_cast<std::uintptr_t>(caller), detail::stack_pointer()))
    return false;
  const posix::kept_errno keep;
  if (posix::is_in_child_of_vfork()) return false;
  take_turn(*p, gives_way);
  return false;
}

// The outermost one counts. On a signal stack it is told by that.
in_handler::in_handler(const void* frame) noexcept {
  const detail::place* const p = place_of_thread();
  const auto here = reinterpret_cast<std::uintptr_t>(frame);
  if (p == nullptr || !holds(*p->current, here)) return;
  whose_ = posix::self_if_any();
  if (whose_ == nullptr) return;
  before_ = whose_->handler_frame;
  if (before_ < here) whose_->handler_frame = here;
}

namespace {

void count_stream(bool more) noexcept {
  posix::record* const r = posix::self_if_any();
  if (r == nullptr) return;
  if (more) {
    ++r->streams_held;
  } else if (r->streams_held != 0) {
    --r->streams_held;
  }
}

}  // namespace

void lock_stream(std::FILE* stream) {
  count_stream(true);
  flockfile(stream);
}

int try_lock_stream(std::FILE* stream) {
  const int status = ftrylockfile(stream);
  if (status == 0) count_stream(true);
  return status;
}

void unlock_stream(std::FILE* stream) {
  funlockfile(stream);
  count_stream(false);
}

}  // namespace strata::preload

namespace strata::detail {

void begin_ticks_here() noexcept {
  static thread_local constinit bool begun __attribute__((tls_model("initial-exec"))) = false;
  const scheduler* const s = this_worker().owner;
  if (begun || s == nullptr) return;
  begun = true;
  preload::begin_ticks_of_os_thread(std::int64_t{s->settings.preempt_us} * 1000);
}

}  // namespace strata::detail
