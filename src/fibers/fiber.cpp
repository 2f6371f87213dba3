// SPDX-License-Identifier: Apache-2.0
#include "strata/fiber.hpp"

#include "sched/scheduler.hpp"

namespace strata {

void threaded::refuse_to_terminate(bool pending) {
  throw misuse_error(pending ? "terminate() while a fiber of the frame is enabled and has not begun"
                             : "terminate() called twice");
}

namespace detail {

void fiber_threw(worker& w) noexcept {
  // A frame that was terminated before the throw is ended as usual; any other stays until the
  // runtime ends.
  w.owner->fail(std::current_exception());
}

void end_frame(worker& w, bool inside_gate) noexcept {
  threaded* const f = w.ended;
  w.ended = nullptr;
  if (f->gate_ != nullptr && !inside_gate && !f->gate_->close()) return;
  const frame_type& type = *f->type_;
  w.events.terminations.add();
  type.destroy(*f);
  w.frames.deallocate(f, type.block_bytes);
}

bool exclusive_gate::enter(task& t) {
  const std::lock_guard lock(mutex_);
  if (busy_) {
    waiting_.push_back(&t);
    return false;
  }
  busy_ = true;
  return true;
}

bool exclusive_gate::leave(worker& w) {
  task* next = nullptr;
  {
    const std::lock_guard lock(mutex_);
    busy_ = false;
    // Nobody waits then: terminate() refuses while a fiber is enabled.
    if (closed_) return true;
    if (waiting_.empty()) return false;
    next = waiting_[next_++];
    if (2 * next_ >= waiting_.size()) {
      waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(next_));
      next_ = 0;
    }
  }
  w.enable(next);
  return false;
}

bool exclusive_gate::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  return !busy_;
}

std::uint64_t path_here(const worker& w) noexcept {
  const std::uint64_t now = os::ticks();
  if (w.path_open) return w.path_before + (now - w.path_since);
  if (w.current_strand != nullptr) return w.current_strand->span + (now - w.current_strand->since);
  return 0;
}

void path_begin(worker& w, std::uint64_t length) noexcept {
  w.path_open = true;
  w.path_before = length;
  w.path_since = os::ticks();
}

void path_end(worker& w) noexcept {
  w.path_open = false;
  w.fiber_ticks.add(os::ticks() - w.path_since);
}

}  // namespace detail
}  // namespace strata
