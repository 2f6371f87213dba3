// SPDX-License-Identifier: Apache-2.0
#include "strata/slot.hpp"

#include <memory>
#include <string>

#include "base/spelling.hpp"
#include "fibers/slot_access.hpp"
#include "sched/scheduler.hpp"

namespace strata {

void slot_ptr::increment(std::uint32_t more) const {
  if (where_.address() == nullptr) return;
  detail::worker& w = detail::this_worker();
  if (where_.node() != w.node || w.owner == nullptr)
    return detail::remote_increment(w, where_, more);
  detail::slot_access::increment(where_.address(), more);
}

detail::task* detail::slot_access::signal(void* s) { return static_cast<slot*>(s)->count_signal(); }

void detail::slot_access::increment(void* s, std::uint32_t more) {
  auto& target = *static_cast<slot*>(s);
  switch (target.counter_.increment(more)) {
    case increment_outcome::counted:
      return;
    case increment_outcome::late:
      target.refuse("an increment too late, after the last signal");
    case increment_outcome::too_many:
      target.refuse("an increment beyond 4294967295 signals in all");
  }
}

void slot::refuse(const char* what) const {
  // The type is still readable when the frame is gone, as long as its memory has not been used
  // again; so is the counter that told us.
  throw misuse_error(std::string("sync slot: ") + what + " (" +
                     std::string(plain_name(type->name())) + ")");
}

struct completion::waiter final : detail::failure_listener {
  explicit waiter(completion& c) noexcept : owner(c) {}
  void computation_failed(detail::worker& w, const std::exception_ptr& e) noexcept override {
    // When its last signal has come, run() ends the wait. A later one must not, which would find us
    // gone.
    if (!owner.counter_.close()) return;
    error = e;
    owner.join_.complete(w);
  }
  [[nodiscard]] std::string describe() const override {
    const std::uint32_t awaited = owner.count();
    return "a completion that awaits " + std::to_string(awaited) +
           (awaited == 1 ? " signal" : " signals");
  }
  completion& owner;
  std::exception_ptr error;
};

void completion::init(std::uint32_t count) noexcept {
  counter_.init(count, 0);
  std::destroy_at(&join_);
  std::construct_at(&join_);
  if (count == 0) complete_at_once();
}

void completion::complete_at_once() noexcept {
  join_.complete(detail::this_worker());  // nobody waits yet
}

void completion::run(detail::task& t, detail::worker& w) {
  // The firing stays queued as its counter has it, so a failure comes too late.
  static_cast<completion&>(static_cast<slot&>(t)).join_.complete(w);
}

// We are queued at a worker, as a task, and it would find us gone.
void completion::end_unawaited() noexcept {
  detail::require_stack();  // what it throws ends the program, which then says it
  join_.wait();
}

void completion::wait() {
  detail::require_stack();
  const detail::uninterrupted guard;  // the list of who is to hear of a failure has a lock
  waiter w(*this);
  detail::scheduler& s = *detail::this_worker().owner;
  s.failure.add(w);
  join_.wait();
  s.failure.remove(w);
  if (w.error != nullptr) std::rethrow_exception(w.error);
  if (detail::strand* here = detail::this_worker().current_strand) {
    here->span = std::max(here->span, path_.load(std::memory_order_relaxed));
  }
}

}  // namespace strata
