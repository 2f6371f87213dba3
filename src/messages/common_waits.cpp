// SPDX-License-Identifier: Apache-2.0
#include "messages/common_waits.hpp"

#include <mutex>

#include "strata/detail/worker.hpp"

namespace strata::messages {

using strata::detail::parking;
using strata::detail::unparked;

class common_waits::listed {
 public:
  listed(shard& in, wait& w) noexcept : in_(in), wait_(w) {
    const std::lock_guard lock(in_.lock);
    in_.waits.append(wait_);
  }
  ~listed() {
    const std::lock_guard lock(in_.lock);
    in_.waits.remove(wait_);
  }
  listed(const listed&) = delete;
  listed& operator=(const listed&) = delete;

 private:
  shard& in_;
  wait& wait_;
};

void common_waits::require_all_nodes() const {
  // Acquire: the loss. Partner: on_lost().
  if (is_lost_.load(std::memory_order_acquire)) std::rethrow_exception(loss_);
}

// With the address's queue locked. Relaxed: who has listed itself too late for on_lost() has seen
// the loss by way of the list's lock, who queues itself too late for it by way of the queue's.
bool common_waits::goes_on(void* w) {
  const wait& mine = *static_cast<const wait*>(w);
  const parking& how = *mine.how;
  return !mine.is_lost->load(std::memory_order_relaxed) &&
         (how.still == nullptr || how.still(how.argument));
}

unparked common_waits::park(const parking& how) {
  const strata::detail::uninterrupted guard;
  require_all_nodes();
  wait mine{&how, &is_lost_, {}};
  const listed here(shards_[strata::detail::this_worker().id % shards_in_all], mine);
  parking until_lost = how;
  until_lost.still = &goes_on;
  until_lost.argument = &mine;
  return strata::detail::park(until_lost);
}

void common_waits::on_lost(const std::exception_ptr& error) noexcept {
  loss_ = error;
  // Release: the loss. Partner: require_all_nodes().
  is_lost_.store(true, std::memory_order_release);
  for (shard& s : shards_) {
    const std::lock_guard lock(s.lock);
    s.waits.for_each([](const wait& w) { strata::detail::unpark(w.how->address, UINT32_MAX); });
  }
}

}  // namespace strata::messages
