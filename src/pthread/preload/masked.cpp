// SPDX-License-Identifier: Apache-2.0
#include "pthread/preload/masked.hpp"

#include "pthread/signals.hpp"
#include "pthread/wait.hpp"

namespace strata::preload {

using detail::posix::record;

thread_news::thread_news()
    : thread_(&detail::posix::self()),
      handlers_before_(
          static_cast<record*>(thread_)->handlers_run.load(std::memory_order_relaxed)) {}

bool thread_news::are_there(const sigset_t& mask) const {
  auto& r = *static_cast<record*>(thread_);
  return detail::posix::has_to_leave(r) ||
         r.handlers_run.load(std::memory_order_relaxed) != handlers_before_ ||
         detail::posix::has_signals_beyond(r, mask);
}

void thread_news::heed(const sigset_t& mask) const {
  auto& r = *static_cast<record*>(thread_);
  detail::posix::act_on_cancellation();
  detail::posix::deliver_signals_with(r, mask);
}

}  // namespace strata::preload
