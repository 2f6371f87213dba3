// SPDX-License-Identifier: Apache-2.0
// The transport's interface; what it does is in the files that ucx_state.hpp names.
#include "net/ucx/ucx_transport.hpp"

#include <mutex>

#include "net/ucx/ucx_state.hpp"

namespace strata::net::ucx {

ucx_transport::ucx_transport(const settings& s) : state_(std::make_unique<state>(s)) {}
ucx_transport::~ucx_transport() = default;

launch::address ucx_transport::address() const { return {{}, 0, state_->w.address(), {}}; }

void ucx_transport::join(const std::vector<launch::address>& directory, std::int64_t deadline_ns,
                         const tidings& meanwhile, absence of_others) {
  if (of_others == absence::is_accepted)
    return state_->connect_where_possible(directory, deadline_ns, meanwhile);
  state_->connect(directory, deadline_ns, meanwhile);
}

void ucx_transport::admit(node_id n, const launch::address& where) {
  const std::lock_guard held(state_->lock);
  state_->admit(n, where);
}

bool ucx_transport::reaches(node_id n) const noexcept {
  const state::peer* const p = state_->peers.find(n);
  return p != nullptr && !p->dropped.load(std::memory_order_relaxed);
}

send_outcome ucx_transport::try_send(node_id n, header h, std::span<const std::byte> head,
                                     std::span<const std::byte> body) {
  state& t = *state_;
  state::peer* const p = t.peers.find(n);
  if (p == nullptr) return send_outcome::lost;
  STRATA_DCHECK(h.source == t.s.self, h.source, t.s.self);
  STRATA_DCHECK(h.destination == n, h.destination, n);
  STRATA_CHECK(head.size() + body.size() <= payload_bytes_max, head.size(), body.size());
  if (p->lost.load(std::memory_order_acquire)) return send_outcome::lost;
  const std::lock_guard held(t.lock);
  return t.send(*p, is_message, h, head, body);
}

bool ucx_transport::flush(node_id n) {
  state& t = *state_;
  state::peer* const p = t.peers.find(n);
  if (p == nullptr) return true;
  const std::lock_guard held(t.lock);
  (void)t.send_batch(*p);
  if (p->pending == 0 || p->lost.load(std::memory_order_relaxed)) return true;
  p->flush_wanted = true;
  return false;
}

std::size_t ucx_transport::poll(receiver& r, std::size_t messages_max) {
  state& t = *state_;
  if (t.next == t.draining.size()) t.refill();
  std::size_t handed = 0;
  std::uint64_t bytes = 0;
  while (handed < messages_max && t.next < t.draining.size()) {
    const arrival& a = t.draining[t.next++];
    const state::peer& p = t.peers.at(a.h.source);
    // Of who is dropped too: what was under way is over now.
    if (a.what == news::block_arrived) {
      if (a.whole) bytes += sizeof(block_head) + a.bytes;
      r.on_arrived(p.id, a.offset, a.whole);
    }
    if (a.what == news::block_given) r.on_given(p.id, a.offset, a.whole);
    if (a.what == news::loss && !p.dropped.load(std::memory_order_relaxed)) r.on_lost(p.id, p.why);
    if (a.what != news::message || p.dropped.load(std::memory_order_relaxed)) continue;
    ++handed;
    bytes += sizeof a.h + a.h.length;
    r.on_message(a.h, t.draining.payload(a));
  }
  const bool more = t.next < t.draining.size();
  t.unfinished.store(more, std::memory_order_release);
  // Nothing else tells a receiver that went to sleep before.
  if (more) t.wake(t.receiver_bell);
  if (bytes != 0) {
    t.messages_in.store(t.messages_in.load(std::memory_order_relaxed) + handed,
                        std::memory_order_relaxed);
    t.bytes_in.store(t.bytes_in.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
  }
  return handed;
}

void ucx_transport::drop(node_id n) noexcept {
  state& t = *state_;
  state::peer* const p = t.peers.find(n);
  if (p == nullptr) return;
  p->dropped.store(true, std::memory_order_relaxed);
  const std::lock_guard held(t.lock);
  t.lose(*p, "was dropped");
  t.close_lost();
}

net::transfers* ucx_transport::transfers_of_peers() noexcept {
  return state_->s.transfers == rendezvous::never ? nullptr : state_.get();
}

std::size_t ucx_transport::blocks_mapped() const noexcept {
  const std::lock_guard held(state_->lock);
  return state_->mapped;
}

transport::traffic ucx_transport::counted() const noexcept {
  const state& t = *state_;
  traffic all;
  {
    const std::lock_guard held(t.lock);
    for (const auto& p : t.peers.all()) {
      all.messages_out += p->messages_out;
      all.bytes_out += p->bytes_out;
      all.writes += p->writes;  // as far as we know
    }
  }
  all.messages_in = t.messages_in.load(std::memory_order_relaxed);
  all.bytes_in = t.bytes_in.load(std::memory_order_relaxed);
  all.wakes = t.wakes.load(std::memory_order_relaxed);
  return all;
}

}  // namespace strata::net::ucx
