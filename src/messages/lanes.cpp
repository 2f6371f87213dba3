// SPDX-License-Identifier: Apache-2.0
// Messages to other nodes, within the room that their targets have: a lane holds what this node has
// left of it, and what waits for more. The other end of it is in arrivals.cpp.
#include "cluster/words/retry_without_memory.hpp"
#include "messages/messenger.hpp"
#include "messages/process_memory.hpp"
#include "strata/error.hpp"

namespace strata::messages {

using cluster::kind;
using std::memory_order_relaxed;

template <class Head>
void messenger::post(net::node_id to, kind k, const Head& head, std::span<const std::byte> body) {
  static_assert(std::has_unique_object_representations_v<Head>);
  if (broken_.load(memory_order_relaxed)) return;
  // Before it can arrive. Partner: on_message() there, and quiescence.
  counts_->sent.fetch_add(1, std::memory_order_seq_cst);
  // Whatever is half done when this is called: requests that wait, room that is taken.
  cluster::retry_without_memory([&] {
    if (!broken_.load(memory_order_relaxed))
      mail_->post(to, k, std::as_bytes(std::span(&head, 1)), body);
  });
}
template void messenger::post(net::node_id, kind, const fetched_head&, std::span<const std::byte>);
template void messenger::post(net::node_id, kind, const pull_head&, std::span<const std::byte>);
template void messenger::post(net::node_id, kind, const piece_head&, std::span<const std::byte>);
template void messenger::post(net::node_id, kind, const help_head&, std::span<const std::byte>);
template void messenger::post(net::node_id, kind, const room_head&, std::span<const std::byte>);
template void messenger::post(net::node_id, kind, const closed_head&, std::span<const std::byte>);
template void messenger::post(net::node_id, kind, const seek_head&, std::span<const std::byte>);
template void messenger::post(net::node_id, kind, const sought_head&, std::span<const std::byte>);
template void messenger::post(net::node_id, kind, const recall_head&, std::span<const std::byte>);
template void messenger::post(net::node_id, kind, const told_head&, std::span<const std::byte>);

messenger::load messenger::take_room(lane& l, const request& r) noexcept {
  if (crowded_.load(memory_order_relaxed) && is_held_back(l)) [[unlikely]]
    return load::nothing;
  const net::node_id to = r.info.target.node();
  // Asked only where it makes a difference.
  net::joint_copies* const way = r.from.size() > eager_bytes_max ? mail_->copies_with(to) : nullptr;
  const bool is_near = way != nullptr && way->copies_of(to) != nullptr;
  const std::size_t eager_max = is_near ? eager_bytes_near : eager_bytes_max;
  const std::size_t all = charge_for_message + r.from.size();
  if (r.what == action::send && r.from.size() <= eager_max) {
    if (l.room >= all + reserve_bytes) {
      l.room -= static_cast<std::uint32_t>(all);
      return load::everything;
    }
    // Fetched one by one they cost more than it takes until there is room again.
    if (!l.stuck) return load::nothing;
  }
  if (l.room < charge_for_message) return load::nothing;
  l.room -= charge_for_message;
  return load::envelope;
}

void messenger::send_to_node(request& r) {
  const std::shared_ptr<lane>& to = lanes_.in_use(r.info.target);
  lane& l = *to;
  outcome how = outcome::done;
  {
    const std::lock_guard lock(l.lock);
    if (broken_.load(std::memory_order_acquire)) {
      how = outcome::lost;
    } else if (l.open != outcome::done) {
      how = l.open;
    } else {
      const load what = l.waiting.empty() ? take_room(l, r) : load::nothing;
      if (what == load::nothing) {
        const request* const before = l.waiting.last();
        if (before != nullptr && before->info.source != r.info.source) l.in_turn.wanted();
        r.at = request::place::lane;
        r.on = to;
        l.waiting.add(r);
        if (l.awaits_news) tell_of_news(l);
        return;
      }
      transmit(l, r, what);
      if (what == load::envelope) return;
      r.gives_way = l.in_turn.take();
    }
  }
  r.finish_unseen(how);
}

void messenger::transmit(lane& l, request& r, load what) {
  const net::node_id to = r.info.target.node();
  r.at = request::place::nowhere;
  if (what == load::everything) {
    post(to, kind::message, message_head{r.info.target.bits(), r.info.source.bits(), r.info.tag, 0},
         r.from);
    ++l.eager;
    return;
  }
  r.at = request::place::offered;
  std::uint64_t number = 0;
  {
    const std::lock_guard lock(transfers_mutex_);
    number = next_number_++;
    cluster::retry_without_memory([&] { offers_.emplace(number, open_offer{&r}); });
  }
  r.order = number;
  const process_mark mark = offers_mark_.get();
  post(to, kind::offer,
       offer_head{.target = r.info.target.bits(),
                  .source = r.info.source.bits(),
                  .bytes = r.from.size(),
                  .offer = number,
                  .address = reinterpret_cast<std::uintptr_t>(r.from.data()),
                  .mark_address = mark.address,
                  .mark = mark.value,
                  .process = own_process(),
                  .tag = r.info.tag,
                  .charge = what == load::sought ? 0U : charge_for_message});
}

// With the lane's lock. Returns those that have ended with it.
std::vector<request*> messenger::send_waiting(lane& l) {
  std::vector<request*> ended;
  while (!l.waiting.empty()) {
    request& next = *l.waiting.first();
    // Before anything has changed.
    if (ended.size() == ended.capacity())
      cluster::retry_without_memory([&] { ended.reserve(2 * ended.size() + 1); });
    const load what = take_room(l, next);
    if (what == load::nothing) break;
    // Before it is posted: an offer may be fetched, and its request be gone, at once.
    l.waiting.remove(next);
    transmit(l, next, what);
    if (what == load::everything) ended.push_back(&next);
  }
  return ended;
}

void messenger::close_lane(endpoint_id target, outcome how) {
  ended_requests waiting = lanes_.end(target, how);
  waiting.for_each([how](request& r) { r.finish(how); });
}

// ---- from the nodes that it sends to ----

void messenger::on_room(net::node_id from, cluster::reader& r) {
  const auto head = r.take<room_head>();
  r.end();
  const auto target = endpoint_id::from_bits(head.target);
  if (target.node() != from || head.bytes > window_bytes || head.stuck > 1)
    throw cluster::malformed("room for messages that were not sent");
  const std::shared_ptr<lane> l = lanes_.find(target);
  if (l == nullptr) return;  // its end was told, and it is forgotten
  std::vector<request*> ended;
  {
    const std::lock_guard lock(l->lock);
    if (head.bytes > window_bytes - l->room) throw cluster::malformed("more room than there is");
    l->room += static_cast<std::uint32_t>(head.bytes);
    if (head.number > l->last_notice) {
      l->last_notice = head.number;
      l->stuck = head.stuck != 0;
    }
    ended = send_waiting(*l);
  }
  for (request* const one : ended) one->finish(outcome::done);
}

void messenger::on_closed(net::node_id from, cluster::reader& r) {
  const auto head = r.take<closed_head>();
  r.end();
  const auto target = endpoint_id::from_bits(head.target);
  if (target.node() != from) throw cluster::malformed("an end of another node's endpoint");
  const bool is_recalled = head.how == end_word::recalled;
  if (head.how > end_word::recalled || (is_recalled && head.offer == 0))
    throw cluster::malformed("an end that is unknown");
  const outcome how = is_recalled                       ? outcome::cancelled
                      : head.how == end_word::announced ? outcome::announced
                                                        : outcome::closed;
  if (!is_recalled) close_lane(target, how);
  if (head.offer == 0) return;
  if (request* const refused = take_offer(head.offer, from)) refused->finish(how);
}

}  // namespace strata::messages
