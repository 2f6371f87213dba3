// SPDX-License-Identifier: Apache-2.0
// Where the threads of a node sleep, who wakes them, and who calls UCX meanwhile.
#include <algorithm>
#include <mutex>
#include <utility>

#include "net/ucx/ucx_state.hpp"
#include "net/wait_for_events.hpp"
#include "os/clock.hpp"

namespace strata::net::ucx {

namespace {

// The sender thread fetches no more than this for a receiver that does not come for it.
constexpr std::size_t arrivals_bytes_max = std::size_t{4} << 20;
// Nor more at once, while others wait for the lock: a peer may send as fast as this fetches.
constexpr int fetch_rounds_max = 64;

}  // namespace

bool ucx_transport::state::is_full() const noexcept {
  return filling.bytes() >= arrivals_bytes_max;
}

bool ucx_transport::state::fetch_for_receiver() {
  for (int i = 0; i != fetch_rounds_max; ++i) {
    if (!is_busy() || is_full() || !w.progress()) return false;
  }
  return true;
}

void ucx_transport::wait_for_messages(std::int64_t timeout_ns) {
  state& t = *state_;
  // Before the descriptor is armed, and before we look: see unattended().
  const attendance::sleep asleep(t.attendants);
  if (t.unfinished.load(std::memory_order_acquire)) return;
  {
    const std::lock_guard held(t.lock);
    if (!t.filling.empty() || !t.may_sleep()) return;
  }
  // From here on the worker's descriptor tells, unless somebody else fetches what arrives: then he
  // rings.
  if (!t.receiver_bell.may_sleep()) return;
  t.watchers.fetch_add(1, std::memory_order_relaxed);
  epoll_event event;
  wait_for_events(t.receiver_sleeps.get(), &event, 1, timeout_ns);
  t.receiver_bell.awake();
  t.stop_watching();
}

void ucx_transport::wake_receiver() noexcept { state_->wake(state_->receiver_bell); }

void ucx_transport::wait_for_room(std::int64_t timeout_ns) {
  state& t = *state_;
  const std::int64_t end_ns = timeout_ns < 0 ? never_ns : os::now_ns() + timeout_ns;
  for (;;) {
    bool busy = false;  // UCX has something to send: we look after it
    bool again = false;
    std::int64_t until_ns = end_ns;
    bool told = t.sender_called.exchange(false, std::memory_order_acquire);
    {
      const std::lock_guard held(t.lock);
      const std::uint64_t now_ticks = os::ticks();
      t.sender_until_ns = 0;
      if (t.settling.is_running() && t.settling.rings(os::now_ns())) t.settle();
      const bool more = t.fetch_for_receiver();
      until_ns = std::min(until_ns, t.send_due_batches(now_ticks));
      t.close_lost();
      // Partner: wait_for_messages(), which may be asleep since before we fetched it.
      if (!t.filling.empty()) t.wake(t.receiver_bell);
      told |= std::exchange(t.room_made, false);
      busy = t.is_busy();
      if (busy && t.is_full()) {
        t.sender_stands_by = true;  // refill() rings
        busy = false;
      }
      again = busy && !told && (more || !t.may_sleep());
      t.sender_attends = busy && !told && !again;
      if (t.settling.is_running()) until_ns = std::min(until_ns, t.settling.until_ns());
      if (!told && !again) t.sender_until_ns = until_ns;
    }
    if (told) return;
    if (again) {
      t.lock.give_way();
      continue;
    }
    std::int64_t left_ns = -1;
    if (until_ns != never_ns) {
      const std::int64_t now_ns = os::now_ns();
      if (now_ns >= end_ns) break;
      left_ns = std::max<std::int64_t>(until_ns - now_ns, 0);
      sharpen_timers();
    }
    if (!t.sender_bell.may_sleep()) continue;
    epoll_event event;
    wait_for_events((busy ? t.sender_watches : t.sender_sleeps).get(), &event, 1, left_ns);
    t.sender_bell.awake();
  }
  const std::lock_guard held(t.lock);
  t.sender_attends = false;
  t.sender_until_ns = 0;
}

void ucx_transport::wake_sender() noexcept {
  state_->sender_called.store(true, std::memory_order_release);
  state_->wake(state_->sender_bell);
}

void ucx_transport::attended() noexcept {
  state_->watchers.fetch_add(1, std::memory_order_relaxed);
  state_->attendants.begin();
}

bool ucx_transport::unattended() noexcept {
  state& t = *state_;
  // Who sleeps may have armed the worker's descriptor before, which our polls have undone.
  const bool look = t.attendants.end();
  t.stop_watching();
  return look || t.unfinished.load(std::memory_order_acquire);
}

}  // namespace strata::net::ucx
