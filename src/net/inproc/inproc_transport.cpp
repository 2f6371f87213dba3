// SPDX-License-Identifier: Apache-2.0
#include "net/inproc/inproc_transport.hpp"

#include <utility>

#include "strata/detail/check.hpp"

namespace strata::net::inproc {

meeting::meeting(node_id nodes, std::size_t credits_bytes) {
  for (unsigned n = 0; n < nodes; ++n) all_.emplace_back(nodes, credits_bytes);
}

inproc_transport::inproc_transport(std::shared_ptr<meeting> where, node_id self)
    : where_(std::move(where)),
      self_(self),
      mine_(where_->all_[self].in),
      dropped_(where_->nodes()) {
  mine_.open();
  // Release: the inbox. Partner: reaches().
  const bool was_taken = where_->all_[self].is_taken.exchange(true, std::memory_order_acq_rel);
  STRATA_CHECK(!was_taken, self);
}

inproc_transport::~inproc_transport() {
  tell(mine_.close());
  for (unsigned n = 0; n < where_->nodes(); ++n) {
    if (n != self_) in_of(static_cast<node_id>(n)).put_end(self_, "has ended");
  }
}

bool inproc_transport::reaches(node_id peer) const noexcept {
  return peer != self_ && peer < where_->nodes() &&
         where_->all_[peer].is_taken.load(std::memory_order_acquire);
}

send_outcome inproc_transport::try_send(node_id peer, header h, std::span<const std::byte> head,
                                        std::span<const std::byte> body) {
  if (!reaches(peer) || is_dropped(peer)) return send_outcome::lost;
  h.source = self_;
  const send_outcome outcome = in_of(peer).put(h, head, body);
  if (outcome == send_outcome::sent) {
    messages_out_.fetch_add(1, std::memory_order_relaxed);
    bytes_out_.fetch_add(sizeof h + head.size() + body.size(), std::memory_order_relaxed);
  }
  return outcome;
}

// Fewer than asked for means that nothing is left: ends of others do not count.
std::size_t inproc_transport::poll(receiver& r, std::size_t messages_max) {
  std::size_t messages = 0;
  while (messages < messages_max) {
    taken_.clear();
    mine_.take(taken_, messages_max - messages);
    if (taken_.empty()) break;
    for (const inbox::item& i : taken_) {
      if (is_dropped(i.h.source)) continue;
      if (!i.ended_by.empty()) {
        r.on_lost(i.h.source, i.ended_by);
        continue;
      }
      ++messages;
      messages_in_.fetch_add(1, std::memory_order_relaxed);
      bytes_in_.fetch_add(sizeof i.h + i.payload.size(), std::memory_order_relaxed);
      r.on_message(i.h, i.payload);
    }
    tell(mine_.give_back(taken_));
  }
  return messages;
}

void inproc_transport::tell(const std::vector<node_id>& refused) {
  for (const node_id n : refused) in_of(n).tell_sender();
}

void inproc_transport::wait_for_messages(std::int64_t timeout_ns) {
  mine_.wait_for_messages(timeout_ns);
}
void inproc_transport::wake_receiver() noexcept { mine_.wake_receiver(); }
void inproc_transport::wait_for_room(std::int64_t timeout_ns) { mine_.wait_for_room(timeout_ns); }
void inproc_transport::wake_sender() noexcept { mine_.tell_sender(); }
void inproc_transport::attended() noexcept { mine_.attended(); }
bool inproc_transport::unattended() noexcept { return mine_.unattended(); }
void inproc_transport::rouse_stand_in() noexcept { mine_.rouse_stand_in(); }
void inproc_transport::dismiss_stand_in() noexcept { mine_.dismiss_stand_in(); }

transport::stand_in_outcome inproc_transport::stand_in(os::futex_word& own,
                                                       std::uint32_t expected) noexcept {
  return mine_.stand_in(own, expected);
}

void inproc_transport::drop(node_id peer) noexcept {
  if (peer >= where_->nodes()) return;
  dropped_[peer].store(true, std::memory_order_relaxed);
  // Its sender is to see that it is lost, if it waits for room there.
  mine_.tell_sender();
}

transport::traffic inproc_transport::counted() const noexcept {
  traffic t;
  t.messages_out = messages_out_.load(std::memory_order_relaxed);
  t.bytes_out = bytes_out_.load(std::memory_order_relaxed);
  t.messages_in = messages_in_.load(std::memory_order_relaxed);
  t.bytes_in = bytes_in_.load(std::memory_order_relaxed);
  t.writes = t.messages_out;
  t.wakes = mine_.wakes();
  return t;
}

}  // namespace strata::net::inproc
