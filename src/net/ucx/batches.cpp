// SPDX-License-Identifier: Apache-2.0
// Small messages of a burst, which leave together in one active message: it costs UCX, and a
// network of sockets the kernel, as much as any of them alone would.
//
// A batch goes out when it is full, when something comes for the peer that is not for it, when it
// is due or its burst is over and somebody polls, and else by the sender thread, which is told when
// it is due.
#include <algorithm>
#include <utility>

#include "net/ucx/ucx_state.hpp"
#include "os/clock.hpp"

namespace strata::net::ucx {

namespace {

// About what one call of UCX's sends over sockets (worker.cpp). With an eighth of it messages of 64
// B took three times as long: the socket is full then, and takes a little each time.
constexpr std::size_t batch_bytes = 60000;
static_assert(batch_bytes <= sizeof(wire_head) + payload_bytes_max);

}  // namespace

send_outcome ucx_transport::state::add_to_batch(peer& p, const header& h,
                                                std::span<const std::byte> head,
                                                std::span<const std::byte> body,
                                                std::uint64_t now_ticks) {
  const std::size_t bytes = sizeof(wire_head) + h.length;
  if (p.batch != nullptr && p.batch->size + bytes > batch_bytes &&
      send_batch(p) == send_outcome::lost)
    return send_outcome::lost;
  if (p.batch == nullptr) {
    p.batch = outgoing.take(batch_bytes);
    ++batches;
    p.batch_due_ticks = now_ticks + os::to_ticks(s.flush_deadline_ns);
    p.batch_due_ns = os::now_ns() + s.flush_deadline_ns;
    if (p.batch_due_ns < sender_until_ns) wake(sender_bell);
  }
  wire_head first{h, p.pass_out};
  first.h.sequence = p.next_sequence++;
  p.batch->append(first, head, body);
  p.count(h);
  send_outcome outcome = send_outcome::staged;
  if (now_ticks >= p.batch_due_ticks) outcome = send_batch(p);
  // Not now_ticks: to send one takes longer than the pause that ends a burst.
  p.quick.sent(os::ticks());
  return outcome;
}

send_outcome ucx_transport::state::send_batch(peer& p) {
  if (p.batch == nullptr) return send_outcome::sent;
  --batches;
  return hand_over(p, is_batch, std::exchange(p.batch, nullptr));
}

std::int64_t ucx_transport::state::send_due_batches(std::uint64_t locked_ticks) {
  if (batches == 0) return never_ns;
  std::int64_t next_ns = never_ns;
  for (const auto& p : peers.all()) {
    if (p->batch == nullptr) continue;
    const bool goes_on = !p->quick.is_over(locked_ticks);
    if (goes_on && locked_ticks < p->batch_due_ticks) {
      next_ns = std::min(next_ns, p->batch_due_ns);
      continue;
    }
    (void)send_batch(*p);
    // Who waited for the lock meanwhile goes on with its burst.
    if (goes_on) p->quick.sent(os::ticks());
  }
  return next_ns;
}

void ucx_transport::state::give_up_batch(peer& p) noexcept {
  if (p.batch == nullptr) return;
  --batches;
  outgoing.put_back(std::exchange(p.batch, nullptr));
}

}  // namespace strata::net::ucx
