// SPDX-License-Identifier: Apache-2.0
// What UCX brings: who is believed, in which order it is taken, and what waits for poll(); and that
// a peer is lost.
#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>

#include "net/ucx/ucx_state.hpp"
#include "os/clock.hpp"

namespace strata::net::ucx {

namespace {

// Larger ones stay in UCX's memory until they are handled, if UCX allows.
constexpr std::size_t copy_bytes_max = 1024;
// A poll that finds nothing yet, but sees UCX work, tries again so often.
constexpr int progress_rounds = 4;

}  // namespace

ucs_status_t ucx_transport::state::arrived(unsigned what, std::byte* data, std::size_t bytes,
                                           std::uint64_t attributes) {
  // Anybody may have sent this. UCS_OK gives the memory back, whatever it was.
  wire_head from;
  if (bytes < sizeof from || (attributes & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0) return UCS_OK;
  std::memcpy(&from, data, sizeof from);
  bytes -= sizeof from;
  const header& h = from.h;
  peer* const source = peers.find(h.source);
  if (source == nullptr || from.pass != source->pass_in) return UCS_OK;
  // A node of the job has.
  peer& p = *source;
  if (p.lost.load(std::memory_order_relaxed)) return UCS_OK;
  if (h.destination != s.self || h.length != bytes || bytes > payload_bytes_max) {
    lose(p, "sent a malformed header");
    return UCS_OK;
  }
  if (!p.order.is_next(h.sequence)) {
    if (!p.order.keep(what, h, {data + sizeof from, bytes})) {
      lose(p, "sent a message out of order");
    }
    return UCS_OK;
  }
  p.order.advance();
  const bool may_hold = (attributes & UCP_AM_RECV_ATTR_FLAG_DATA) != 0;
  const bool holds = accept(p, what, h, {data + sizeof from, bytes}, may_hold ? data : nullptr);
  while (auto early = p.order.take()) {
    p.order.advance();
    (void)accept(p, early->what, early->h, early->payload, nullptr);
  }
  return holds ? UCS_INPROGRESS : UCS_OK;
}

// One that is cut short shows it by its length, as any other does.
void ucx_transport::state::batch_arrived(std::span<std::byte> all) {
  while (!all.empty()) {
    wire_head from{};
    std::memcpy(&from, all.data(), std::min(sizeof from, all.size()));
    const std::size_t bytes = std::min(sizeof from + from.h.length, all.size());
    (void)arrived(is_message, all.data(), bytes, 0);
    all = all.subspan(bytes);
  }
}

bool ucx_transport::state::accept(peer& p, unsigned what, const header& h,
                                  std::span<const std::byte> payload, void* whole) {
  switch (what) {
    case is_hello:
      p.greeted = true;
      return false;
    case is_bye:
      lose(p, "has left");
      return false;
    case is_probe:
      return false;
    default:
      break;
  }
  if (whole != nullptr && h.length > copy_bytes_max) {
    filling.hold(h, payload, whole);
    return true;
  }
  filling.copy(h, payload);
  return false;
}

void ucx_transport::state::lose(peer& p, const std::string& why) {
  if (p.lost.load(std::memory_order_relaxed)) return;
  p.why = why;
  p.lost.store(true, std::memory_order_release);
  pending -= p.pending;
  p.refused = p.flush_wanted = false;
  give_up_batch(p);
  give_up_blocks(p);
  if (!p.dropped.load(std::memory_order_relaxed)) filling.lose(p.id);
  wake(receiver_bell);
  room_is_made();
}

void ucx_transport::state::refill() {
  lock.give_way();
  const std::lock_guard held(lock);
  const std::uint64_t now_ticks = os::ticks();
  give_back(draining);
  next = 0;
  for (int i = 0; i < progress_rounds && filling.empty(); ++i) {
    if (!w.progress()) break;
  }
  (void)send_due_batches(now_ticks);
  close_lost();
  unmap_ended();  // before anybody is told that he may do as he likes with that memory
  std::swap(filling, draining);
  if (std::exchange(sender_stands_by, false)) wake(sender_bell);
}

}  // namespace strata::net::ucx
