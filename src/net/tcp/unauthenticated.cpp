// SPDX-License-Identifier: Apache-2.0
#include "net/tcp/unauthenticated.hpp"

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

namespace strata::net::tcp {
namespace {

constexpr std::int64_t no_descriptor_pause_ns = 10'000'000;

}  // namespace

unauthenticated::unauthenticated(const identity& me, std::span<const listener> doors, limits l,
                                 mesh_ground& ground, std::function<bool(node_id)> has_joined)
    : me_(me), doors_(doors), limits_(l), ground_(ground), has_joined_(std::move(has_joined)) {}

void unauthenticated::drop_late(std::int64_t now_ns) {
  while (!all_.empty() && all_.front().talk.limit_ns <= now_ns) all_.pop_front();
}

void unauthenticated::add_to(std::vector<pollfd>& polled, std::int64_t now_ns,
                             std::int64_t& until_ns) {
  first_door_ = polled.size();
  const bool listens = now_ns >= listen_again_ns_;
  doors_polled_ = listens ? doors_.size() : 0;
  if (!listens) until_ns = std::min(until_ns, listen_again_ns_);
  for (const listener& door : doors_.first(doors_polled_))
    polled.push_back({door.get(), POLLIN, 0});
  first_polled_ = polled.size();
  for (const stranger& s : all_) {
    polled.push_back({s.talk.socket.get(), s.talk.events(), 0});
    until_ns = std::min(until_ns, s.talk.limit_ns);
  }
}

void unauthenticated::accept_all(std::size_t door, std::int64_t now_ns) {
  // Few at a time: who connects faster than we accept must not push out those who are talking.
  const std::size_t at_once = std::max<std::size_t>(limits_.most / 16, 1);
  for (std::size_t i = 0; i < at_once; ++i) {
    std::string from;
    os::descriptor s = ground_.accept(doors_[door].get(), from);
    if (!s) {
      if (!is_want_of_descriptors(errno)) return;
      // Make room and look again soon; the listening socket would report it without end.
      if (!all_.empty()) all_.pop_front();
      listen_again_ns_ = now_ns + no_descriptor_pause_ns;
      return;
    }
    listen_again_ns_ = 0;
    if (all_.size() >= limits_.most) all_.pop_front();
    all_.push_back({{std::move(s), handshake::acceptor(me_, has_joined_, fresh_nonce()),
                     std::move(from), now_ns + limits_.each_ns},
                    door});
  }
}

}  // namespace strata::net::tcp
