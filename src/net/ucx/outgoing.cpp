// SPDX-License-Identifier: Apache-2.0
// What goes out over UCX: from a send to the word that it is sent, and what UCX may still hold
// then. Small messages of a burst make a detour: see batches.cpp.
#include <utility>

#include "net/ucx/ucx_state.hpp"
#include "os/clock.hpp"

namespace strata::net::ucx {

namespace {

// Larger ones are worth a call of UCX's by themselves.
constexpr std::size_t batched_bytes_max = 2048;

ucs_status_t status_of(ucs_status_ptr_t returned) { return UCS_PTR_STATUS(returned); }

}  // namespace

send_outcome ucx_transport::state::send(peer& p, what kind, header h,
                                        std::span<const std::byte> head,
                                        std::span<const std::byte> body) {
  if (p.lost.load(std::memory_order_relaxed)) return send_outcome::lost;
  h.length = static_cast<std::uint32_t>(head.size() + body.size());
  h.source = s.self;
  h.destination = p.id;
  const std::size_t bytes = sizeof(wire_head) + h.length;
  const std::size_t collected = p.batch != nullptr ? p.batch->size : 0;
  if (kind == is_message && p.in_flight_bytes != 0 &&
      p.in_flight_bytes + collected + bytes > s.in_flight_bytes_max) {
    p.refused = true;
    return send_outcome::would_block;
  }
  const std::uint64_t now_ticks = os::ticks();
  if (kind == is_message && p.quick.goes_on(now_ticks) && bytes <= batched_bytes_max)
    return add_to_batch(p, h, head, body, now_ticks);
  if (send_batch(p) == send_outcome::lost) return send_outcome::lost;
  std::unique_ptr<parcel> m = outgoing.take(bytes);
  h.sequence = p.next_sequence++;
  m->append({h, p.pass_out}, head, body);
  const send_outcome outcome = hand_over(p, kind, std::move(m));
  if (kind != is_message || outcome == send_outcome::lost) return outcome;
  p.count(h);
  p.quick.sent(os::ticks());
  return outcome;
}

send_outcome ucx_transport::state::hand_over(peer& p, what kind, std::unique_ptr<parcel> m) {
  m->peer = &p;
  m->is_message = kind == is_message || kind == is_batch;
  ucp_request_param_t how{};
  how.op_attr_mask =
      UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  how.flags = UCP_AM_SEND_FLAG_EAGER;  // a rendezvous would be overtaken by what comes after it
  how.cb.send = [](void* request, ucs_status_t, void* user) {
    parcel* const done = static_cast<parcel*>(user);
    state& of = static_cast<peer*>(done->peer)->of;
    of.ucp.ucp_request_free(request);
    of.sent(done);
  };
  how.user_data = m.get();
  const ucs_status_ptr_t request =
      ucp.ucp_am_send_nbx(p.endpoint, kind, nullptr, 0, m->bytes.get(), m->size, &how);
  if (UCS_PTR_IS_ERR(request)) {
    outgoing.put_back(std::move(m));
    lose_because_of(p, status_of(request));
    return send_outcome::lost;
  }
  if (m->is_message) ++p.writes;
  if (request == nullptr) {
    const bool was_message = m->is_message;
    outgoing.put_back(std::move(m));
    if (was_message) unsettle(p);
    return send_outcome::sent;
  }
  p.in_flight_bytes += m->size;
  (void)m.release();  // sent() gets it
  ++p.pending;
  ++pending;
  // It goes out when somebody calls UCX again.
  if (!sender_attends) wake(sender_bell);
  return send_outcome::staged;
}

// UCX has no more use for the message.
void ucx_transport::state::sent(parcel* done) {
  std::unique_ptr<parcel> m(done);
  peer& p = *static_cast<peer*>(m->peer);
  p.in_flight_bytes -= m->size;
  const bool was_message = m->is_message;
  outgoing.put_back(std::move(m));
  --p.pending;
  if (p.lost.load(std::memory_order_relaxed)) return;  // and not counted any more
  --pending;
  if (p.pending == 0 && was_message) unsettle(p);
  if (p.pending == 0 && std::exchange(p.flush_wanted, false)) room_is_made();
  if (p.refused && p.in_flight_bytes <= s.in_flight_bytes_max / 2) {
    p.refused = false;
    room_is_made();
  }
}

// UCX says of a message that it is sent when it has copied it, and may hold its end until the
// socket takes it. Whoever watches the worker's descriptor gives it another push; if nobody does,
// the sender has to.
void ucx_transport::state::unsettle(peer& p) {
  p.unsettled = unsettled = true;
  if (watchers.load(std::memory_order_relaxed) == 0) settle_soon();
}

// The last one leaves what UCX holds to the sender.
void ucx_transport::state::stop_watching() {
  if (watchers.fetch_sub(1, std::memory_order_relaxed) != 1) return;
  const std::lock_guard held(lock);
  if (unsettled) settle_soon();
}

void ucx_transport::state::settle_soon() {
  if (settling.goes_on()) return;
  settling.start(os::now_ns());
  wake(sender_bell);
}

// The sender's: finds out whether something is held. A message that UCX takes at once had nothing
// before it; one that has to wait tells when it is out, and the sender attends until then. (UCX's
// own flush asks the peer for an answer, which may compute for a while.) Also while somebody
// watches again: else each time that he stops the sender would be woken once more.
void ucx_transport::state::settle() {
  unsettled = false;
  for (const auto& p : peers.all()) {
    if (!std::exchange(p->unsettled, false)) continue;
    if (p->pending == 0) (void)send(*p, is_probe, {}, {}, {});
  }
}

}  // namespace strata::net::ucx
