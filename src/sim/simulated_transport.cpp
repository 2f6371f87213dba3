// SPDX-License-Identifier: Apache-2.0
#include "sim/simulated_transport.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "strata/detail/check.hpp"

namespace strata::sim {
namespace {

using net::header;
using net::send_outcome;

// What a packet begins with: bytes taken in of what came the other way.
using taken_in_word = std::uint64_t;
// Of the channel: sequence and acknowledgement.
constexpr std::size_t channel_bytes = 8;
// More does not wait for others.
constexpr std::size_t staged_bytes_max = std::size_t{8} << 10;

void append(std::vector<std::byte>& to, std::span<const std::byte> what) {
  to.insert(to.end(), what.begin(), what.end());
}

}  // namespace

simulated_transport::simulated_transport(wires& w, node_id self, hands& h)
    : wires_(w), in_(w.in), self_(self), hands_(h) {
  if (w.all_.size() <= self) w.all_.resize(self + std::size_t{1});
  STRATA_CHECK(w.all_[self] == nullptr, self);
  w.all_[self] = this;
}

simulated_transport::~simulated_transport() { wires_.all_[self_] = nullptr; }

// ---- sending ----

simulated_transport::line& simulated_transport::line_to(node_id peer) {
  line& l = lines_[peer];
  if (l.channel == nullptr) {
    l.channel = std::make_unique<net::reliable_channel>(
        wires_.how.channel,
        net::reliable_channel::hooks{
            [this, peer](const net::reliable_channel::packet& p) { transmit(peer, p); },
            [this, peer](std::span<const std::byte> packet) { take_packet(peer, packet); }});
  }
  return l;
}

send_outcome simulated_transport::try_send(node_id peer, header h, std::span<const std::byte> head,
                                           std::span<const std::byte> body) {
  line& l = line_to(peer);
  if (l.has_ended) return send_outcome::lost;
  if (l.under_way >= wires_.how.credits_bytes) {
    l.refuses = true;
    return send_outcome::would_block;
  }
  h.length = static_cast<std::uint32_t>(head.size() + body.size());
  STRATA_CHECK(h.length <= net::payload_bytes_max, h.length);
  h.sequence = l.next_out++;
  const std::size_t bytes = sizeof h + h.length;
  l.under_way += bytes;
  most_under_way_ = std::max(most_under_way_, l.under_way);
  ++counted_.messages_out;
  counted_.bytes_out += bytes;
  if (l.staged.empty()) l.staged.reserve(sizeof(taken_in_word) + bytes);
  if (l.staged.empty()) l.staged.resize(sizeof(taken_in_word));  // filled in when it leaves
  append(l.staged, std::as_bytes(std::span(&h, 1)));
  append(l.staged, head);
  append(l.staged, body);
  const std::int64_t now = in_.now_ns();
  const bool waits = wires_.how.staged_ns != 0 && std::exchange(l.sent_at, now) == now &&
                     l.staged.size() < staged_bytes_max;
  if (!waits) {
    send_staged(peer, l);
    return send_outcome::sent;
  }
  in_.at(now + wires_.how.staged_ns, [this] { wake_sender(); });
  return send_outcome::staged;
}

void simulated_transport::send_staged(node_id peer, line& l) {
  const taken_in_word taken_in = std::exchange(l.taken_in, 0);
  if (l.staged.empty()) l.staged.resize(sizeof taken_in);
  std::memcpy(l.staged.data(), &taken_in, sizeof taken_in);
  ++counted_.writes;
  l.channel->send(std::exchange(l.staged, {}), in_.now_ns());
  watch(peer);
}

bool simulated_transport::flush(node_id peer) {
  const auto found = lines_.find(peer);
  if (found != lines_.end() && !found->second.has_ended && !found->second.staged.empty())
    send_staged(peer, found->second);
  return true;
}

void simulated_transport::transmit(node_id peer, const net::reliable_channel::packet& p) {
  if (has_crashed_ || !is_open(peer)) return;
  std::vector<std::byte> copy(p.payload.begin(), p.payload.end());
  // Before the copy moves away: in which order arguments are made nobody says.
  const std::size_t bytes = channel_bytes + copy.size();
  in_.carry(
      self_, peer, bytes, hands_.departs_ns(),
      [&all = wires_, self = self_, peer, p, number = line_to(peer).number,
       copy = std::move(copy)] {
        const simulated_transport* const here = all.find(self);
        simulated_transport* const there = all.find(peer);
        if (here == nullptr || here->has_crashed_ || there == nullptr || all.is_silent(self, peer))
          return;
        net::reliable_channel::packet arrived = p;
        arrived.payload = copy;
        there->on_packet(self, number, arrived);
      });
}

// Plans the next look at what may have to be repeated.
void simulated_transport::watch(node_id peer) {
  line& l = line_to(peer);
  if (l.has_ended) return;
  const std::int64_t next = l.channel->on_time(in_.now_ns());
  if (next >= l.timer_at) return;
  l.timer_at = next;
  in_.at(next, [this, peer] {
    if (has_crashed_) return;
    line_to(peer).timer_at = INT64_MAX;
    watch(peer);
  });
}

// ---- receiving ----

void simulated_transport::on_packet(node_id from, std::uint32_t connection,
                                    const net::reliable_channel::packet& p) {
  if (has_crashed_) return;
  line& l = line_to(from);
  // Repeated until this end has it, too.
  if (std::max(l.number, l.refused) < connection) return;
  if (l.number != connection || l.has_ended) {
    simulated_transport* const other = wires_.find(from);
    if (wires_.how.tells_of_ends && other->line_to(self_).number == connection)
      other->lose(self_, "closed the connection");
    return;
  }
  l.channel->on_packet(p, in_.now_ns());
  watch(from);
  if (!inbox_.empty()) hands_.on_arrival(*this);
}

void simulated_transport::take_packet(node_id from, std::span<const std::byte> packet) {
  line& l = line_to(from);
  if (l.has_ended) return;
  taken_in_word taken_in = 0;
  const bool is_whole = packet.size() >= sizeof taken_in;
  if (is_whole) std::memcpy(&taken_in, packet.data(), sizeof taken_in);
  if (!is_whole || taken_in > l.under_way) return lose(from, "sent a malformed packet");
  l.under_way -= taken_in;
  if (l.refuses && l.under_way <= wires_.how.credits_bytes / 2) {
    l.refuses = false;
    wake_sender();
  }
  if (packet.size() > sizeof taken_in)
    inbox_.push_back({from, l.number, {packet.begin(), packet.end()}, sizeof taken_in, {}});
}

std::size_t simulated_transport::poll(net::receiver& r, std::size_t messages_max) {
  std::size_t messages = 0;
  while (messages < messages_max && !inbox_.empty() && !has_crashed_) {
    if (hand_over_next(r, inbox_.front())) ++messages;
    // What was handed over may have dropped the peer.
    if (inbox_.front().read == inbox_.front().packet.size()) inbox_.pop_front();
  }
  return messages;
}

// False: it was no message. The arrival has been read then.
bool simulated_transport::hand_over_next(net::receiver& r, arrival& a) {
  line& l = line_to(a.from);
  const bool is_past = l.is_dropped || a.connection != l.number;
  if (is_past || !a.ended_by.empty()) {
    a.read = a.packet.size();
    if (!is_past) r.on_lost(a.from, a.ended_by);
    return false;
  }
  const std::span<const std::byte> rest = std::span(a.packet).subspan(a.read);
  header h{};
  const bool has_head = rest.size() >= sizeof h;
  if (has_head) std::memcpy(&h, rest.data(), sizeof h);
  const bool is_right = has_head && h.length <= net::payload_bytes_max &&
                        h.length <= rest.size() - sizeof h && h.source == a.from &&
                        h.destination == self_ && h.sequence == l.next_in;
  if (!is_right) {
    a.read = a.packet.size();
    lose(a.from, "sent a malformed header");
    return false;
  }
  ++l.next_in;
  const std::size_t bytes = sizeof h + h.length;
  a.read += bytes;
  ++counted_.messages_in;
  counted_.bytes_in += bytes;
  r.on_message(h, rest.subspan(sizeof h, h.length));
  have_taken_in(a.from, l, bytes);
  return true;
}

void simulated_transport::have_taken_in(node_id from, line& l, std::size_t bytes) {
  l.taken_in += bytes;
  if (l.has_ended || l.taken_in < wires_.how.credits_bytes / 2) return;
  send_staged(from, l);
}

void simulated_transport::wake_receiver() noexcept {
  in_.at(in_.now_ns(), [this] {
    if (!has_crashed_ && !inbox_.empty()) hands_.on_arrival(*this);
  });
}

void simulated_transport::wake_sender() noexcept {
  if (std::exchange(room_is_planned_, true)) return;
  in_.at(in_.now_ns(), [this] {
    room_is_planned_ = false;
    if (!has_crashed_) hands_.on_room(*this);
  });
}

void simulated_transport::wait_for_messages(std::int64_t timeout_ns) {
  STRATA_CHECK(timeout_ns == 0, timeout_ns);
}

void simulated_transport::wait_for_room(std::int64_t timeout_ns) {
  STRATA_CHECK(timeout_ns == 0, timeout_ns);
}

// ---- connections that end ----

bool simulated_transport::is_open(node_id peer) const {
  const auto found = lines_.find(peer);
  return found == lines_.end() || !found->second.has_ended;
}

void simulated_transport::drop(node_id peer) noexcept {
  line& l = line_to(peer);
  l.has_ended = l.is_dropped = true;
  l.staged.clear();
  // What waits for room there is to hear that there never will be.
  if (std::exchange(l.refuses, false)) wake_sender();
}

void simulated_transport::restart(node_id peer, std::uint32_t connection) {
  line& l = line_to(peer);
  STRATA_CHECK(l.is_dropped && connection > l.number, peer, connection);
  l = line{};
  l.number = connection;
}

void simulated_transport::lose(node_id peer, const std::string& why) {
  line& l = line_to(peer);
  if (std::exchange(l.has_ended, true)) return;
  l.staged.clear();
  inbox_.push_back({peer, l.number, {}, 0, why});
  if (std::exchange(l.refuses, false)) wake_sender();
  wake_receiver();
}

}  // namespace strata::sim
