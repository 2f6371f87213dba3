// SPDX-License-Identifier: Apache-2.0
// Where the threads of a node sleep, who wakes them, and what is done when it is due.
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <mutex>

#include "net/udp/peer.hpp"
#include "net/udp/udp_transport.hpp"
#include "net/wait_for_events.hpp"
#include "os/clock.hpp"
#include "strata/detail/check.hpp"

namespace strata::net::udp {

namespace {

// For so long a thread keeps the watch after the last answer has come: so it is not woken for each
// of the messages of a conversation, of which none is under way for long.
constexpr std::int64_t watch_ns = 20'000'000;

}  // namespace

void udp_transport::sleeper::ring() noexcept {
  if (bell.ring()) wakes.fetch_add(1, std::memory_order_relaxed);
}

// The caller has published due_ns in what next_due_ns() reads. Either we see until when the thread
// is going to sleep, or it sees due_ns when it looks once more: both sides are seq_cst. Partner:
// sleep().
//
// What is due may be late by half of the time until then. In a conversation each message makes
// something due that the answer settles, now a little later, now a little earlier than what the
// thread sleeps towards: it would be woken for most of them, and wants the core of whoever answers.
// The price: an acknowledgement that nothing answers may be so late that its packet is sent again.
void udp_transport::sleeper::alarm(std::int64_t due_ns, std::int64_t now_ns) noexcept {
  if (!active.load(std::memory_order_relaxed)) active.store(true, std::memory_order_relaxed);
  const std::int64_t late_ns = std::max<std::int64_t>(due_ns - now_ns, 0) / 2;
  if (sleeps_until_ns.load() > due_ns + late_ns) ring();
}

std::int64_t udp_transport::next_due_ns() const noexcept {
  std::int64_t due_ns = never_ns;
  for (const auto& p : peers_.all()) {
    due_ns = std::min(due_ns, p->due_ns.load());
  }
  return due_ns;
}

// What is due is seen to in time, unless all of this process was stopped. With the peer's lock,
// before what is due changes.
void udp_transport::excuse_silence(peer& p, std::int64_t now_ns) noexcept {
  const std::int64_t due_ns = p.due_ns.load(std::memory_order_relaxed);
  if (p.lost.load(std::memory_order_relaxed) || due_ns == 0) return;  // 0: at once
  if (now_ns - due_ns > settings_.silence_ns_max / 2) p.c->out().nobody_looked_until(now_ns);
}

void udp_transport::do_what_is_due(std::int64_t now_ns) {
  for (const auto& p : peers_.all()) {
    if (p->due_ns.load(std::memory_order_relaxed) > now_ns) continue;
    const std::lock_guard held(p->lock);
    excuse_silence(*p, now_ns);
    if (p->meets.due_ns() <= now_ns) look_after_words(*p, now_ns);
    if (p->lost.load(std::memory_order_relaxed)) continue;
    if (p->end_limit_ns <= now_ns) {
      // Nobody confirms any more what waits for it here.
      lose(*p, p->c->is_complete() ? "has left" : "has left in the middle of a message");
      continue;
    }
    p->c->on_time(now_ns);
    if (p->c->out().silent_ns(now_ns) > settings_.silence_ns_max) {
      lose(*p, "has not answered for " + std::to_string(settings_.silence_ns_max / 1'000'000'000) +
                   " s");
      continue;
    }
    pump(*p, now_ns);
  }
}

// What is due, and that of a burst that is over: the caller has nothing better to do.
void udp_transport::send_what_is_collected(std::int64_t now_ns) {
  for (const auto& p : peers_.all()) {
    if (!p->collecting.load(std::memory_order_relaxed)) continue;
    const std::lock_guard held(p->lock);
    if (p->collected_due_ns <= now_ns ||
        (p->collected_due_ns != never_ns && p->quick.is_over(os::ticks())))
      pump(*p, now_ns);
  }
}

// Sleeps until then, or something is due, or it is rung or an event comes.
udp_transport::slept udp_transport::sleep(sleeper& s, int epoll, std::int64_t end_ns) {
  const std::int64_t now_ns = os::now_ns();
  std::int64_t until_ns = std::min(end_ns, next_due_ns());
  if (s.active.exchange(false, std::memory_order_relaxed)) {
    until_ns = std::min(until_ns, now_ns + watch_ns);
  }
  if (until_ns <= now_ns) return slept::not_at_all;
  s.sleeps_until_ns.store(until_ns);  // partners: alarm(), poll()
  if (next_due_ns() < until_ns || (&s == &receiver_ && unfinished_.load())) {
    s.sleeps_until_ns.store(0);
    return slept::not_at_all;
  }
  if (!s.bell.may_sleep()) {
    s.sleeps_until_ns.store(0);
    return slept::rung;
  }
  epoll_event event{};
  const int n = wait_for_events(epoll, &event, 1, until_ns == never_ns ? -1 : until_ns - now_ns);
  s.bell.awake();
  s.sleeps_until_ns.store(0);
  return n > 0 ? slept::rung : slept::until_then;
}

void udp_transport::wait_for_messages(std::int64_t timeout_ns) {
  const std::int64_t end_ns = timeout_ns < 0 ? never_ns : os::now_ns() + timeout_ns;
  while (!unfinished_.load(std::memory_order_acquire)) {
    {
      const attendance::sleep asleep(attendants_);
      if (sleep(receiver_, receiver_.epoll.get(), end_ns) == slept::rung) return;
    }
    const std::int64_t now_ns = os::now_ns();
    if (now_ns >= end_ns) return;
    do_what_is_due(now_ns);
  }
}

void udp_transport::wake_receiver() noexcept { receiver_.ring(); }

void udp_transport::wait_for_room(std::int64_t timeout_ns) {
  const std::int64_t end_ns = timeout_ns < 0 ? never_ns : os::now_ns() + timeout_ns;
  sharpen_timers();
  for (;;) {
    if (sender_called_.exchange(false, std::memory_order_acquire)) return;
    if (room_made_.exchange(false, std::memory_order_acquire)) return;
    const int epoll = nobody_polls_ ? sender_fetches_.get() : sender_.epoll.get();
    const slept how = sleep(sender_, epoll, end_ns);
    const std::int64_t now_ns = os::now_ns();
    send_what_is_collected(now_ns);
    // What is overdue may have been answered long ago.
    if (nobody_polls_ || next_due_ns() <= now_ns) {
      const bool found = fetch_for_receiver(now_ns);
      const std::uint64_t polls = polls_.load(std::memory_order_relaxed);
      nobody_polls_ = polls == polls_seen_ && (nobody_polls_ || found);
      polls_seen_ = polls;
    }
    if (how == slept::rung) {
      // Perhaps the socket has room again.
      for (const auto& p : peers_.all()) {
        const std::lock_guard held(p->lock);
        if (p->unsent != 0) pump(*p, now_ns);
      }
    } else if (now_ns >= end_ns) {
      return;
    }
    do_what_is_due(now_ns);
  }
}

// The sender's. False: somebody polls, or there is nothing to fetch.
bool udp_transport::fetch_for_receiver(std::int64_t now_ns) {
  const std::unique_lock held(inbox_, std::try_to_lock);
  if (!held.owns_lock()) return false;
  const bool found = receive(now_ns) != 0;
  answer(now_ns);
  if (turn_count_ != 0) {
    unfinished_.store(true, std::memory_order_release);
    receiver_.ring();
  }
  return found;
}

void udp_transport::tend() {
  const std::int64_t now_ns = os::now_ns();
  (void)fetch_for_receiver(now_ns);
  do_what_is_due(now_ns);
}

void udp_transport::wake_sender() noexcept {
  sender_called_.store(true, std::memory_order_release);
  sender_.ring();
}

void udp_transport::room_is_made() noexcept {
  room_made_.store(true, std::memory_order_release);
  sender_.ring();
}

// It has no room: the sender thread is to be told when it has again, once.
void udp_transport::watch(const datagram_socket& full) noexcept {
  epoll_event event{};
  event.events = EPOLLOUT | EPOLLONESHOT;
  event.data.fd = full.get();
  if (::epoll_ctl(sender_.epoll.get(), EPOLL_CTL_MOD, full.get(), &event) == 0) return;
  if (errno == ENOENT && ::epoll_ctl(sender_.epoll.get(), EPOLL_CTL_ADD, full.get(), &event) == 0)
    return;
  if (errno == EEXIST) ::epoll_ctl(sender_.epoll.get(), EPOLL_CTL_MOD, full.get(), &event);
}

}  // namespace strata::net::udp
