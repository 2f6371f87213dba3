// SPDX-License-Identifier: Apache-2.0
#include "net/tcp/incoming.hpp"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <system_error>

namespace strata::net::tcp {

namespace {

// Several large messages per system call; an idle peer touches one page of it.
constexpr std::size_t ring_bytes = std::size_t{256} << 10;
static_assert(ring_bytes >= 2 * message_bytes_max);

}  // namespace

incoming::incoming(node_id peer, node_id self) : peer_(peer), self_(self), ring_(ring_bytes) {}

incoming::outcome incoming::receive(int fd) {
  const std::span<std::byte> room = ring_.free();
  const ssize_t n = ::recv(fd, room.data(), room.size(), MSG_DONTWAIT);
  if (n > 0) {
    ring_.append(static_cast<std::size_t>(n));
    return outcome::ok;
  }
  if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return outcome::nothing;
  if (n < 0) {
    why_ = std::generic_category().message(errno);
  } else {
    why_ = ring_.used() == 0 ? "closed the connection"
                             : "closed the connection in the middle of a message";
  }
  return outcome::lost;
}

bool incoming::has_next() const noexcept {
  const std::span<const std::byte> data = ring_.data();
  if (data.size() < sizeof(header)) return false;
  header h;
  std::memcpy(&h, data.data(), sizeof h);
  // A length that is too large is something to report.
  return h.length > payload_bytes_max || data.size() >= sizeof h + h.length;
}

incoming::outcome incoming::next(header& h, std::span<const std::byte>& payload) {
  const std::span<const std::byte> data = ring_.data();
  if (data.size() < sizeof h) return outcome::nothing;
  std::memcpy(&h, data.data(), sizeof h);
  if (is_wrong(h)) return outcome::lost;
  if (data.size() < sizeof h + h.length) return outcome::nothing;
  payload = data.subspan(sizeof h, h.length);
  ++next_sequence_;
  const std::size_t bytes = sizeof h + h.length;
  messages_.store(messages_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  bytes_.store(bytes_.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
  ring_.consume(bytes);  // the bytes stay where they are until something is received over them
  return outcome::ok;
}

void incoming::restart() noexcept {
  ring_.consume(ring_.used());
  next_sequence_ = 0;
  why_.clear();
}

bool incoming::is_wrong(const header& h) {
  if (h.length > payload_bytes_max) {
    why_ = "sent a header with a length of " + std::to_string(h.length);
  } else if (h.source != peer_) {
    why_ = "sent a message in the name of node " + std::to_string(h.source);
  } else if (h.destination != self_) {
    why_ = "sent a message for node " + std::to_string(h.destination);
  } else if (h.sequence != next_sequence_) {
    why_ = "sent message " + std::to_string(h.sequence) + " where " +
           std::to_string(next_sequence_) + " was due";
  } else {
    return false;
  }
  return true;
}

void incoming::add_to(transport::traffic& t) const noexcept {
  t.messages_in += messages_.load(std::memory_order_relaxed);
  t.bytes_in += bytes_.load(std::memory_order_relaxed);
}

}  // namespace strata::net::tcp
