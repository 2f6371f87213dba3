// SPDX-License-Identifier: Apache-2.0
#include "tools/strata/control/control_socket.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "launch/messages.hpp"
#include "os/clock.hpp"
#include "strata/error.hpp"
#include "tools/strata/events/shared_names.hpp"

namespace strata::launcher {

namespace {

constexpr std::int64_t patience_ns = 5'000'000'000;  // for a request, and for hanging up
constexpr std::int64_t deaf_ns = 1'000'000'000;
constexpr std::size_t strangers_max = 16;  // who have not asked for anything yet
constexpr std::size_t waiting_max = 256;   // for an answer

bool may_speak(int socket) {
  ucred who{};
  socklen_t bytes = sizeof who;
  return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &bytes) == 0 &&
         (who.uid == ::geteuid() || who.uid == 0);
}

}  // namespace

control_socket::control_socket(event_loop& loop, job_folder folder, std::string job, listener who)
    : loop_(loop),
      folder_(std::move(folder)),
      job_(std::move(job)),
      who_(std::move(who)),
      socket_(folder_.listen(job_)) {
  watch();
}

control_socket::~control_socket() {
  loop_.forget(socket_.get());
  folder_.remove(job_);
}

void control_socket::watch() {
  loop_.watch_reads(socket_.get(), [this] { accept_some(); });
}

void control_socket::accept_some() {
  // A few at a time: the job comes first.
  for (std::size_t i = 0; i < strangers_max; ++i) {
    os::descriptor socket(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket && (errno == EINTR || errno == ECONNABORTED)) continue;
    if (!socket && errno == EAGAIN) return;
    if (!socket) {
      deaf_until_ns_ = os::now_ns() + deaf_ns;
      return loop_.forget(socket_.get());
    }
    if (may_speak(socket.get())) accept_one(std::move(socket));
  }
}

void control_socket::accept_one(os::descriptor socket) {
  const auto is_stranger = [](const connection& c) { return !c.asked && !c.over; };
  if (std::count_if(connections_.begin(), connections_.end(), is_stranger) >=
      static_cast<std::ptrdiff_t>(strangers_max)) {
    // The oldest has had the longest time to speak.
    connections_.erase(std::find_if(connections_.begin(), connections_.end(), is_stranger));
  }
  connection& c = connections_.emplace_back(connection{.who = next_++});
  c.limit_ns = os::now_ns() + patience_ns;
  c.line = std::make_unique<frame_channel>(
      loop_, std::move(socket), os::descriptor(),
      frame_channel::listener{[this, &c](const frame& f) { on_request(c, f); },
                              [&c](const std::string&) { c.over = true; }},
      control_payload_bytes_max);
}

void control_socket::on_request(connection& c, const frame& f) {
  // One request each; a second one ends the line.
  if (c.asked) refuse_frame("a message comes out of turn");
  const auto asked = std::count_if(connections_.begin(), connections_.end(),
                                   [](const connection& one) { return one.asked && !one.over; });
  c.asked = true;
  c.limit_ns = no_deadline;
  const bool room = asked < static_cast<std::ptrdiff_t>(waiting_max);
  switch (f.kind) {
    case frame_kind::ask_status:
      return answer(c.who, pack_status(who_.status()), true);
    case frame_kind::ask_join: {
      const join_request what = unpack_ask_join(f.payload);
      c.answers = what.nodes;
      if (room) return who_.join(c.who, what);
      break;
    }
    case frame_kind::ask_leave: {
      const node_id node = unpack_node(f.payload);
      if (room) return who_.leave(c.who, node);
      break;
    }
    default:
      refuse_frame("a message comes out of turn");
  }
  denied(c.who, "too many others wait for an answer");
}

void control_socket::answer(ticket who, const std::string& bytes, bool last) {
  const auto found = std::find_if(connections_.begin(), connections_.end(),
                                  [&](const connection& c) { return c.who == who; });
  if (found == connections_.end() || found->over) return;
  found->line->send(bytes);
  if (found->answers > 0) --found->answers;
  if (last || found->answers == 0) found->limit_ns = os::now_ns() + patience_ns;
}

void control_socket::joined(ticket who, node_id node) { answer(who, pack_joined(node), false); }
void control_socket::left(ticket who, node_id node) { answer(who, pack_left(node), true); }
void control_socket::denied(ticket who, const std::string& why) {
  answer(who, pack_denied(why), true);
}

void control_socket::on_time(std::int64_t now_ns) {
  std::erase_if(connections_, [&](const connection& c) { return c.over || now_ns >= c.limit_ns; });
  if (deaf_until_ns_ != 0 && now_ns >= deaf_until_ns_) {
    deaf_until_ns_ = 0;
    watch();
  }
}

void control_socket::postpone(std::int64_t ns) {
  for (connection& c : connections_) {
    if (c.limit_ns != no_deadline) c.limit_ns += ns;
  }
}

std::int64_t control_socket::deadline_ns() const noexcept {
  std::int64_t earliest = deaf_until_ns_ != 0 ? deaf_until_ns_ : no_deadline;
  for (const connection& c : connections_) earliest = std::min(earliest, c.limit_ns);
  return earliest;
}

}  // namespace strata::launcher
