// SPDX-License-Identifier: Apache-2.0
#include "net/tcp/reconnector.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <utility>

#include "base/errno_error.hpp"
#include "strata/detail/check.hpp"

namespace strata::net::tcp {
namespace {

// Nothing has to be done before: the bell and the doors wake the thread.
constexpr std::int64_t long_sleep_ns = std::int64_t{3600} * 1'000'000'000;

}  // namespace

reconnector::reconnector(identity me, std::vector<listener> doors, std::vector<number> networks,
                         const settings& s)
    : me_(std::move(me)),
      doors_(std::move(doors)),
      networks_(std::move(networks)),
      settings_(s),
      bell_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      unauthenticated_(me_, doors_, s.unauthenticated_limits, *s.ground,
                       [](node_id) { return false; }) {
  STRATA_CHECK(doors_.size() == networks_.size(), doors_.size(), networks_.size());
  if (!bell_) throw errno_error("cannot create an event descriptor", errno);
}

void reconnector::ring() noexcept {
  const std::uint64_t one = 1;
  while (::write(bell_.get(), &one, sizeof one) < 0 && errno == EINTR) {
  }
}

bool reconnector::connect(node_id n, number network, launch::address where) {
  {
    const std::lock_guard lock(mutex_);
    if (stopped_) return false;
    wishes_.insert_or_assign({n, network}, std::move(where));
  }
  ring();
  return true;
}

void reconnector::stop() noexcept {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  ring();
}

void reconnector::run(hands& h) {
  hands_ = &h;
  try {
    look_until_stopped();
  } catch (...) {
    give_up();
    throw;
  }
}

void reconnector::look_until_stopped() {
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      if (stopped_) return;
    }
    now_ns_ = settings_.ground->now_ns();
    while (take_wish()) {
    }
    unauthenticated_.drop_late(now_ns_);
    wait();
  }
}

// Whoever wished waits to hear what has become of it, and tries nothing else meanwhile.
void reconnector::give_up() {
  stop();
  std::map<goal, launch::address> wishes;
  {
    const std::lock_guard lock(mutex_);
    wishes.swap(wishes_);
  }
  for (const auto& wish : wishes) hands_->on_not_met(wish.first.first, wish.first.second);
  while (!attempts_.empty()) end(goal(attempts_.begin()->first));
}

bool reconnector::take_wish() {
  std::map<goal, launch::address>::node_type wish;
  {
    const std::lock_guard lock(mutex_);
    if (wishes_.empty()) return false;
    wish = wishes_.extract(wishes_.begin());
  }
  begin(wish.key(), wish.mapped());
  return true;
}

void reconnector::begin(const goal& g, const launch::address& where) {
  try {
    os::descriptor s = settings_.ground->connect(where, settings_.socket_buffer_bytes);
    attempts_.insert_or_assign(
        g, conversation{std::move(s), handshake::connector(me_, g.first, fresh_nonce()),
                        text_of(where), now_ns_ + settings_.attempt_limit_ns});
  } catch (const std::exception&) {
    hands_->on_not_met(g.first, g.second);
  }
}

void reconnector::end(const goal& g) {
  attempts_.erase(g);
  hands_->on_not_met(g.first, g.second);
}

void reconnector::wait() {
  polled_.clear();
  polled_.push_back({bell_.get(), POLLIN, 0});
  std::int64_t until_ns = now_ns_ + long_sleep_ns;
  std::vector<goal> talking;
  for (const auto& [g, c] : attempts_) {
    talking.push_back(g);
    polled_.push_back({c.socket.get(), c.events(), 0});
    until_ns = std::min(until_ns, c.limit_ns);
  }
  unauthenticated_.add_to(polled_, now_ns_, until_ns);
  if (settings_.ground->wait(polled_, std::max<std::int64_t>(until_ns - now_ns_, 0)) < 0) {
    if (errno == EINTR) return;
    throw errno_error("cannot wait for other nodes", errno);
  }
  now_ns_ = settings_.ground->now_ns();
  if (polled_[0].revents != 0) {
    std::uint64_t rung = 0;
    (void)!::read(bell_.get(), &rung, sizeof rung);
  }
  for (std::size_t i = 0; i < talking.size(); ++i) {
    const goal g = talking[i];
    conversation& c = attempts_.at(g);
    if (polled_[i + 1].revents != 0) {
      const bool fails = connect_error(c.socket.get()) != 0;
      const auto how = fails ? conversation::progress::broken : c.advance();
      if (how == conversation::progress::joined) {
        os::descriptor socket = std::move(c.socket);
        attempts_.erase(g);
        hands_->on_met(g.first, g.second, std::move(socket));
      } else if (how != conversation::progress::waiting) {
        end(g);
      }
    } else if (c.limit_ns <= now_ns_) {
      end(g);
    }
  }
  unauthenticated_.look(
      polled_, now_ns_,
      [this](conversation& c, std::size_t door) {
        hands_->on_met(c.talk.peer(), networks_[door], std::move(c.socket));
      },
      [](const conversation&) {});
}

}  // namespace strata::net::tcp
