// SPDX-License-Identifier: Apache-2.0
// Who waits, or asks again and again, looks himself for what comes from near by.
#include <atomic>
#include <cstddef>

#include "messages/messenger.hpp"
#include "os/clock.hpp"
#include "sched/scheduler.hpp"
#include "strata/detail/join.hpp"
#include "strata/detail/worker.hpp"

namespace strata::messages {

using std::memory_order_relaxed;

namespace {
// Of a stack, for whatever a message makes happen.
constexpr std::size_t room_for_handling = std::size_t{64} << 10;
}  // namespace

// What is handed over while its receive waits goes where it is wanted, with no copy kept, and
// nobody has to be suspended and woken for it.
void messenger::look_for(const request& r) noexcept {
  // What an idle worker would do, but from here: about as long as an answer takes.
  constexpr unsigned empty_looks_max = 16;
  // Others' traffic may never end, but a wait with a deadline has to.
  constexpr unsigned found_max = 64;
  if (!is_far(r) || detail::stack_bytes_left() < room_for_handling) return;
  const net::node_id from = r.other_end() ? r.other_end().node() : self_;
  unsigned found = 0;
  // Others that are ready come first: who is sent one message after the other would keep the
  // worker.
  for (unsigned empty = 0; empty < empty_looks_max && detail::nothing_else_is_ready(); ++empty) {
    switch (mail_->look_for_message(from)) {
      case cluster::mailer::sight::useless:
        return;
      case cluster::mailer::sight::nothing:
        os::spin_pause();
        break;
      case cluster::mailer::sight::found:
        if (++found == found_max) return;
        empty = 0;
        break;
    }
    if (r.is_done()) return;
  }
}

void messenger::look_now_and_then() const noexcept {
  constexpr unsigned every = 16;
  static thread_local unsigned asked = 0;
  const detail::worker& here = detail::this_worker();
  if (here.owner == nullptr || mail_ == nullptr || ++asked % every != 0) return;
  if (detail::stack_bytes_left() < room_for_handling) return;
  if (const detail::scheduler::visit n(*here.owner);
      n && n->workers_look->load(memory_order_relaxed))
    n->look();
}

}  // namespace strata::messages
