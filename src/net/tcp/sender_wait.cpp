// SPDX-License-Identifier: Apache-2.0
#include "net/tcp/sender_wait.hpp"

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/errno_error.hpp"
#include "net/wait_for_events.hpp"
#include "os/clock.hpp"
#include "strata/detail/check.hpp"

namespace strata::net::tcp {

namespace {

constexpr std::uint32_t bell_id = 0xFFFF'FFFF;
constexpr std::size_t events_max = 64;

}  // namespace

sender_wait::sender_wait() : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (!epoll_) throw errno_error("cannot make an epoll descriptor", errno);
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u32 = bell_id;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, bell_.get(), &event) != 0) {
    throw errno_error("cannot watch an eventfd", errno);
  }
}

void sender_wait::watch(int fd, std::uint32_t peer) {
  // One report for each time that somebody asked: a socket with room is not worth a wake.
  epoll_event event{};
  event.events = EPOLLOUT | EPOLLONESHOT;
  event.data.u32 = peer;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event) == 0) return;
  STRATA_CHECK(errno == ENOENT, errno);
  const int code = ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event);
  STRATA_CHECK(code == 0, errno);
}

void sender_wait::forget(int fd) noexcept {
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);  // it need not be there
}

void sender_wait::staged(std::int64_t due_ns) noexcept {
  // The caller has published due_ns in what next_due_ns() reads. Either we see until when the
  // sender is going to sleep, or it sees due_ns when it looks once more: both sides are seq_cst.
  if (sleeps_until_ns_.load() > due_ns) count(bell_.ring());
}

void sender_wait::end_wait() noexcept {
  ended_.store(true, std::memory_order_release);
  count(bell_.ring());
}

void sender_wait::wait(std::int64_t timeout_ns, const std::function<std::int64_t()>& next_due_ns,
                       const std::function<void(std::uint32_t)>& writable) {
  const std::int64_t end_ns = timeout_ns < 0 ? never_ns : os::now_ns() + timeout_ns;
  bool enough = false;
  bool looked = false;  // at the sockets: at least once, however much else there is to do
  for (;;) {
    if (ended_.exchange(false, std::memory_order_acquire)) enough = true;
    const std::int64_t until_ns = std::min(next_due_ns(), end_ns);
    std::int64_t pause_ns = -1;
    if (until_ns != never_ns) pause_ns = std::max<std::int64_t>(until_ns - os::now_ns(), 0);
    if (enough) pause_ns = 0;
    if (pause_ns == 0 && looked) return;

    bool asleep = false;
    if (pause_ns != 0) {
      sleeps_until_ns_.store(until_ns);  // partner: staged()
      asleep = next_due_ns() >= until_ns && bell_.may_sleep();
      if (!asleep) {
        sleeps_until_ns_.store(0);
        continue;
      }
      if (pause_ns > 0) sharpen_timers();
    }
    std::array<epoll_event, events_max> events;
    const int n =
        wait_for_events(epoll_.get(), events.data(), static_cast<int>(events_max), pause_ns);
    looked = true;
    if (asleep) {
      bell_.awake();
      sleeps_until_ns_.store(0);
    }
    for (int i = 0; i < n; ++i) {
      const std::uint32_t id = events[static_cast<std::size_t>(i)].data.u32;
      if (id == bell_id) continue;
      writable(id);
      enough = true;
    }
  }
}

}  // namespace strata::net::tcp
