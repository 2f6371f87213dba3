// SPDX-License-Identifier: Apache-2.0
#include "net/udp/channel.hpp"

#include <algorithm>

namespace strata::net::udp {

channel::channel(node_id self, node_id peer, const settings& s)
    : self_(self), peer_(peer), settings_(s), out_(s.out), in_(s.in) {}

bool channel::write(std::span<const std::byte> first, std::span<const std::byte> second,
                    std::span<const std::byte> third) {
  if (first.size() + second.size() + third.size() > out_.room_bytes()) return false;
  out_.append(first);
  out_.append(second);
  out_.append(third);
  return true;
}

packet channel::begin_packet() const {
  packet p;
  p.source = self_;
  p.destination = peer_;
  p.number = out_.next_number();
  p.waited_for = out_.waited_for();
  return p;
}

std::size_t channel::next_packet(std::span<std::byte> into, std::int64_t now_ns,
                                 std::uint64_t& number) {
  packet p = begin_packet();
  std::size_t bytes = data_overhead_bytes + settings_.tail_bytes;
  // Room for the acknowledgement comes first: what it says frees the peer.
  if (in_.has_news()) bytes += acknowledgement_bytes(std::min(ranges_max, in_.ranges()));
  sending::piece piece;
  const bool may_send = out_.next(settings_.out.packet_bytes - bytes, piece);
  if (!may_send && in_.due_ns() > now_ns) return 0;
  if (in_.has_news() || (piece.wants_answer && piece.data.empty())) {
    p.flags |= has_acknowledgement;
    p.ack = in_.acknowledge(now_ns);
  }
  if (piece.wants_answer) p.flags |= wants_answer;
  if (!piece.data.empty()) {
    p.flags |= has_data;
    p.offset = piece.offset;
    p.data = piece.data;
  }
  number = p.number;
  bytes = write_packet(p, into);
  out_.sent(piece, bytes + settings_.tail_bytes, now_ns);
  return bytes;
}

std::size_t channel::last_packet(std::span<std::byte> into, std::int64_t now_ns,
                                 std::uint64_t& number) {
  packet p = begin_packet();
  p.flags = has_acknowledgement | is_end;
  p.ack = in_.acknowledge(now_ns);
  p.offset = out_.end();
  number = p.number;
  const std::size_t bytes = write_packet(p, into);
  out_.sent({}, bytes, now_ns);
  return bytes;
}

channel::outcome channel::on_packet(const packet& p, std::int64_t now_ns) {
  const outcome taken = in_.on_packet(p, now_ns);
  if (taken != outcome::taken) return taken;
  if ((p.flags & has_acknowledgement) != 0 && !out_.on_acknowledgement(p.ack, now_ns)) {
    return outcome::malformed;
  }
  if ((p.flags & is_end) != 0) {
    has_end_ = true;
    ends_at_ = p.offset;
  }
  return outcome::taken;
}

std::int64_t channel::due_ns() const noexcept { return std::min(out_.due_ns(), in_.due_ns()); }

}  // namespace strata::net::udp
