// SPDX-License-Identifier: Apache-2.0
#include "net/tcp/readiness.hpp"

#include <sys/epoll.h>
#include <sys/select.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/errno_error.hpp"
#include "net/wait_for_events.hpp"

namespace strata::net::tcp {

namespace {

constexpr std::size_t events_max = 64;

}  // namespace

readiness::readiness(poll_mechanism mechanism, std::span<const source> sources)
    : mechanism_(mechanism),
      epoll_(epoll_on({})),
      sleeps_(epoll_on({bell_.get(), epoll_.get()})),
      stand_in_sleeps_(epoll_on({stand_in_bell_.get(), epoll_.get()})),
      attendants_(sleeps_.get(), epoll_.get()),
      stand_in_attendants_(stand_in_sleeps_.get(), epoll_.get()) {
  for (const source& s : sources) add(s);
}

void readiness::add(const source& s) {
  if (mechanism_ == poll_mechanism::select && s.fd >= FD_SETSIZE) {
    throw user_error("select cannot watch so many connections: choose poll or epoll");
  }
  sources_.push_back(s);
  polled_.push_back({s.fd, POLLIN, 0});
  epoll_event event{};
  event.events = EPOLLIN;  // level-triggered: what a poll() leaves is reported again
  event.data.u32 = s.id;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, s.fd, &event) != 0)
    throw errno_error("cannot watch a connection", errno);
}

void readiness::remove(std::uint32_t id) {
  const auto it =
      std::find_if(sources_.begin(), sources_.end(), [&](const source& s) { return s.id == id; });
  if (it == sources_.end()) return;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, it->fd, nullptr);
  polled_.erase(polled_.begin() + (it - sources_.begin()));
  sources_.erase(it);
}

poll_mechanism readiness::chosen() const noexcept {
  if (mechanism_ != poll_mechanism::automatic) return mechanism_;
  return sources_.size() <= recv_peers_max ? poll_mechanism::recv : poll_mechanism::epoll;
}

void readiness::look(std::vector<std::uint32_t>& ready) {
  switch (chosen()) {
    case poll_mechanism::automatic:
    case poll_mechanism::recv:
      for (const source& s : sources_) ready.push_back(s.id);
      return;
    case poll_mechanism::epoll:
      return take_events(0, ready);
    case poll_mechanism::poll:
      return look_by_poll(ready);
    case poll_mechanism::select:
      return look_by_select(ready);
  }
}

void readiness::look_by_poll(std::vector<std::uint32_t>& ready) {
  if (::poll(polled_.data(), polled_.size(), 0) <= 0) return;
  for (std::size_t i = 0; i < polled_.size(); ++i) {
    if (polled_[i].revents != 0) ready.push_back(sources_[i].id);
  }
}

void readiness::look_by_select(std::vector<std::uint32_t>& ready) {
  fd_set readable;
  FD_ZERO(&readable);
  int largest = -1;
  for (const source& s : sources_) {
    FD_SET(s.fd, &readable);
    largest = std::max(largest, s.fd);
  }
  timeval no_time{};
  if (::select(largest + 1, &readable, nullptr, nullptr, &no_time) <= 0) return;
  for (const source& s : sources_) {
    if (FD_ISSET(s.fd, &readable)) ready.push_back(s.id);
  }
}

void readiness::sleep(std::int64_t timeout_ns) {
  // Level-triggered: whoever looks afterwards sees what woke us.
  epoll_event event{};
  const attendance::sleep asleep(attendants_);
  wait_for_events(sleeps_.get(), &event, 1, timeout_ns);
}

bool readiness::ring_for_rest() noexcept {
  const bool has_stand_in = stand_in_bell_.is_anybody_asleep();
  if (!has_stand_in && !bell_.is_anybody_asleep()) return false;
  // A stand-in that sleeps attends for the other one only.
  if (stand_in_attendants_.is_there()) return false;
  if (!has_stand_in) return bell_.ring();
  stand_in_bell_.ring();
  return false;
}

bool readiness::sleep_as_stand_in() {
  epoll_event event{};
  const attendance::sleep asleep(stand_in_attendants_);
  return wait_for_events(stand_in_sleeps_.get(), &event, 1, -1) != 0;
}

void readiness::take_events(std::int64_t timeout_ns, std::vector<std::uint32_t>& ready) {
  std::array<epoll_event, events_max> events;
  const int n =
      wait_for_events(epoll_.get(), events.data(), static_cast<int>(events_max), timeout_ns);
  for (int i = 0; i < n; ++i) ready.push_back(events[static_cast<std::size_t>(i)].data.u32);
}

}  // namespace strata::net::tcp
