// SPDX-License-Identifier: Apache-2.0
#include "tools/strata/events/event_loop.hpp"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/errno_error.hpp"
#include "os/clock.hpp"

namespace strata::launcher {

event_loop::event_loop() : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (!epoll_) throw errno_error("cannot wait for events", errno);
}

bool event_loop::update(int fd, watched& w, bool is_new) {
  epoll_event event{};
  event.events = (w.read ? EPOLLIN : 0U) | (w.write ? EPOLLOUT : 0U);
  event.data.u64 = std::uint64_t{w.generation} << 32 | static_cast<std::uint32_t>(fd);
  if (::epoll_ctl(epoll_.get(), is_new ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, fd, &event) == 0) {
    return true;
  }
  if (errno == EPERM) return false;
  throw errno_error("cannot wait for events", errno);
}

bool event_loop::set(int fd, callback watched::*which, callback ready) {
  const auto [found, is_new] = watched_.try_emplace(fd);
  watched& w = found->second;
  if (is_new) w.generation = ++generation_;
  w.*which = std::move(ready);
  if (!w.read && !w.write) {
    if (is_new) {
      watched_.erase(fd);
    } else {
      forget(fd);
    }
    return true;
  }
  if (update(fd, w, is_new)) return true;
  watched_.erase(fd);
  return false;
}

bool event_loop::watch_reads(int fd, callback ready) {
  return set(fd, &watched::read, std::move(ready));
}

bool event_loop::watch_writes(int fd, callback ready) {
  return set(fd, &watched::write, std::move(ready));
}

void event_loop::forget(int fd) {
  if (watched_.erase(fd) != 0) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

void event_loop::run_once(std::int64_t deadline_ns) {
  int timeout_ms = -1;
  if (deadline_ns != no_deadline) {
    constexpr std::int64_t ms = 1'000'000;
    const std::int64_t left = std::max<std::int64_t>(0, deadline_ns - os::now_ns());
    timeout_ms = static_cast<int>(std::min<std::int64_t>((left + ms - 1) / ms, 60'000));
  }
  std::array<epoll_event, 64> events;
  const int count =
      ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), timeout_ms);
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<std::size_t>(i)];
    const int fd = static_cast<int>(event.data.u64 & 0xffffffffU);
    const auto call = [&](callback watched::*which, std::uint32_t wanted) {
      const auto found = watched_.find(fd);
      if (found == watched_.end() || found->second.generation != event.data.u64 >> 32) return;
      // A copy: the callback may end its own watch.
      const callback ready = found->second.*which;
      if (ready && (event.events & (wanted | EPOLLHUP | EPOLLERR)) != 0) ready();
    };
    call(&watched::read, EPOLLIN);
    call(&watched::write, EPOLLOUT);
  }
}

}  // namespace strata::launcher
