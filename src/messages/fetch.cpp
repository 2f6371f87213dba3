// SPDX-License-Identifier: Apache-2.0
// Large messages: the receiver fetches them once they are matched, out of the sender's memory, by a
// transfer of the network's, or in pieces. (Requirements P9, P10.)
#include <algorithm>
#include <cstring>
#include <functional>

#include "cluster/words/pieces.hpp"
#include "cluster/words/retry_without_memory.hpp"
#include "messages/giving_way.hpp"
#include "messages/messenger.hpp"
#include "messages/process_memory.hpp"
#include "messages/run_for_others.hpp"
#include "os/clock.hpp"
#include "strata/detail/check.hpp"

namespace strata::messages {

using cluster::kind;
using std::memory_order_relaxed;

namespace {

// A handler reads so much itself, or makes room for so much, which writes to all of it; more would
// keep other messages waiting.
constexpr std::size_t read_in_handler_max = std::size_t{64} << 10;
constexpr std::size_t make_room_in_handler_max = std::size_t{256} << 10;
// From so many bytes on one copy, by the kernel, takes no longer than one by each end at the same
// time, by way of the memory that they share. Below, either may be quicker where the other end is
// awake.
constexpr std::size_t alone_min = std::size_t{256} << 10;
// What is asked for at once, in whole pieces, and what may be under way.
constexpr std::size_t pull_bytes = 8 * piece_bytes_max;
constexpr std::size_t under_way_max = 2 * pull_bytes;

static_assert(read_in_handler_max <= copied_at_once && make_room_in_handler_max <= copied_at_once);

// Within what has been reserved: see has_room_for().
void make_room(std::vector<std::byte>& whole, std::size_t bytes) {
  while (whole.size() + copied_at_once < bytes) {
    whole.resize(whole.size() + copied_at_once);
    give_way_to_others();
  }
  whole.resize(bytes);
}

}  // namespace

void messenger::begin_fetch(const message_info& m, const arrival::offered& offer, request& receive,
                            bool in_handler) {
  const net::node_id node = m.source.node();
  if (m.bytes == 0) {  // the envelope was all of it
    if (receive.whole != nullptr) receive.whole->clear();
    post(node, kind::fetched, fetched_head{offer.id});
    return receive.finish(outcome::done);
  }
  const chosen_way chosen = choose_way(node, m.bytes);
  const bool reads = chosen ? chosen->reads() : readable_[node].load(memory_order_relaxed);
  auto begin = [this, offer, &receive, reads, chosen] {
    std::span<std::byte> into = receive.into;
    if (receive.whole != nullptr) {
      make_room(*receive.whole, receive.info.bytes);
      into = *receive.whole;
    }
    into = into.first(receive.info.bytes);
    if (reads) return fetch_by_reading(offer, receive, into, chosen);
    fetch_from_node(offer, receive, into, chosen);
  };
  const bool makes_room = receive.whole != nullptr && receive.whole->size() < m.bytes;
  const bool takes_long = (reads && m.bytes > read_in_handler_max) ||
                          (makes_room && m.bytes > make_room_in_handler_max);
  if (!in_handler || !takes_long) return begin();
  // The message is matched already.
  run_for_others(*here_, begin);
}

bool messenger::is_attended(net::node_id node) const noexcept {
  const net::joint_copies* const way = mail_->copies_with(node);
  return way != nullptr && way->is_attended(node);
}

messenger::chosen_way messenger::choose_way(net::node_id node, std::size_t bytes) noexcept {
  const bool has_choice = bytes > eager_bytes_near && bytes < alone_min &&
                          readable_[node].load(memory_order_relaxed) && is_attended(node);
  if (!has_choice) return std::nullopt;
  const std::lock_guard lock(transfers_mutex_);
  try {
    return choices_[node].start(bytes, os::ticks());
  } catch (const std::bad_alloc&) {
    return std::nullopt;
  }
}

void messenger::has_fetched(net::node_id node, const chosen_way& chosen,
                            std::size_t bytes) noexcept {
  if (!chosen) return;
  const auto found = choices_.find(node);  // gone: it has left
  if (found != choices_.end()) found->second.done(*chosen, bytes, os::ticks());
}

void messenger::fetch_by_reading(const arrival::offered& offer, request& receive,
                                 std::span<std::byte> into, const chosen_way& chosen) {
  const net::node_id node = receive.info.source.node();
  const joint j = take_copy(node, into.size());
  const bool read =
      j.copy != nullptr ? read_together(j, offer, node, into) : read_part(offer, 0, into);
  give_back(j);
  // As by the other ways, whatever the sender has heard.
  if (broken_.load(std::memory_order_acquire)) return receive.finish(outcome::lost);
  // Where the sender has heard of a loss, and this node has not, it waits there until it does.
  if (!read) {
    readable_[node].store(false, memory_order_relaxed);
    return fetch_from_node(offer, receive, into, std::nullopt);
  }
  paths_.read.fetch_add(1, memory_order_relaxed);
  if (chosen) {
    const std::lock_guard lock(transfers_mutex_);
    has_fetched(node, chosen, into.size());
  }
  post(node, kind::fetched, fetched_head{offer.id});
  receive.finish(outcome::done);
}

bool messenger::read_part(const arrival::offered& offer, std::size_t offset,
                          std::span<std::byte> into) {
  const std::size_t bytes = into.size();
  while (!into.empty()) {
    if (into.size() != bytes) give_way_to_others();
    const std::span<std::byte> part = into.first(std::min(into.size(), copied_at_once));
    if (!read_process(static_cast<std::uint32_t>(offer.process), {offer.mark_address, offer.mark},
                      offer.address + offset, part.data(), part.size()))
      return false;
    offset += part.size();
    into = into.subspan(part.size());
  }
  paths_.bytes_copied.fetch_add(bytes, memory_order_relaxed);
  return true;
}

void messenger::fetch_from_node(const arrival::offered& offer, request& receive,
                                std::span<std::byte> into, const chosen_way& chosen) {
  const net::node_id node = receive.info.source.node();
  {
    const std::lock_guard lock(transfers_mutex_);
    if (!broken_.load(std::memory_order_acquire)) {
      const std::uint64_t number = next_number_++;
      fetch& f = cluster::retry_without_memory(
          [&]() -> std::reference_wrapper<fetch> { return fetches_[number]; });
      f = {.receive = &receive, .from = node, .offer = offer.id, .into = into, .chosen = chosen};
      net::transfers* const way = mail_->transfers_with(node);
      if (way != nullptr && into.size() >= way->bytes_min(node))
        return fetch_in_one(number, f, *way);
      paths_.pulled.fetch_add(1, memory_order_relaxed);
      return ask_for_more(number, f);
    }
  }
  receive.finish(outcome::lost);
}

// What is under way is counted as a message of this node to itself: nobody handles one meanwhile,
// but the computation is not over.
void messenger::fetch_in_one(std::uint64_t number, fetch& f, net::transfers& way) {
  // That connection has ended. If the node has not, it is reached in another way.
  if (!cluster::retry_without_memory([&] { return way.expect(f.from, number, f.into); })) {
    paths_.pulled.fetch_add(1, memory_order_relaxed);
    return ask_for_more(number, f);
  }
  f.moves = &way;
  paths_.moved.fetch_add(1, memory_order_relaxed);
  counts_->sent.fetch_add(1, std::memory_order_seq_cst);
  post(f.from, kind::pull, pull_head{f.offer, number, 0, f.into.size(), 1});
}

void messenger::on_arrived(net::node_id from, std::uint64_t number, bool whole) {
  fetch f;
  {
    const std::lock_guard lock(transfers_mutex_);
    const auto found = fetches_.find(number);
    STRATA_CHECK(found != fetches_.end() && found->second.moves != nullptr, number, from);
    found->second.moves = nullptr;
    if (whole || is_settled(from)) {
      f = found->second;
      fetches_.erase(found);
    } else {
      // The connection has ended, and perhaps the node has not.
      ask_for_more(number, found->second);
    }
  }
  // Who gave it cannot know: its connection may have ended after the last byte, or before.
  if (whole && !broken_.load(std::memory_order_acquire))
    post(from, kind::fetched, fetched_head{f.offer});
  if (f.receive != nullptr) f.receive->finish(whole ? outcome::done : end_without(from));
  counts_->received.fetch_add(1, std::memory_order_seq_cst);
}

void messenger::on_given(net::node_id to, std::uint64_t own_number, bool whole) {
  request* send = nullptr;
  {
    const std::lock_guard lock(transfers_mutex_);
    const auto found = offers_.find(own_number);
    STRATA_CHECK(found != offers_.end() && found->second.moves, own_number, to);
    found->second.moves = false;
    whole = whole || found->second.fetched;
    if (found->second.fetched || is_settled(to)) {
      send = found->second.send;
      offers_.erase(found);
    }
  }
  if (send != nullptr) send->finish(whole ? outcome::done : end_without(to));
  counts_->received.fetch_add(1, std::memory_order_seq_cst);
}

// With transfers_mutex_.
void messenger::ask_for_more(std::uint64_t number, fetch& f) {
  while (f.asked != f.into.size() && f.asked - f.arrived <= under_way_max - pull_bytes) {
    const std::size_t n = std::min(pull_bytes, f.into.size() - f.asked);
    post(f.from, kind::pull, pull_head{f.offer, number, f.asked, n, 0});
    f.asked += n;
  }
}

request* messenger::take_offer(std::uint64_t number, net::node_id to) {
  const std::lock_guard lock(transfers_mutex_);
  const auto found = offers_.find(number);
  if (found == offers_.end() || found->second.moves || found->second.send->info.target.node() != to)
    throw cluster::malformed("an answer to an offer that was not made");
  request* const r = found->second.send;
  offers_.erase(found);
  return r;
}

void messenger::on_pull(net::node_id from, cluster::reader& r) {
  const auto head = r.take<pull_head>();
  r.end();
  std::span<const std::byte> bytes;
  {
    const std::lock_guard lock(transfers_mutex_);
    const auto found = offers_.find(head.offer);
    if (found == offers_.end() || found->second.send->info.target.node() != from)
      throw cluster::malformed("a request for a message that was not offered");
    // In pieces even if it moves: of a connection that has ended the other end may hear first.
    bytes = found->second.send->from;
    if (head.in_one != 0) return give_in_one(from, head, found->second);
  }
  if (head.offset > bytes.size() || head.bytes > bytes.size() - head.offset ||
      head.bytes > pull_bytes)
    throw cluster::malformed("a request for more than a message has");
  // The offer stays: only its receiver, whose messages are handled one after the other, ends it.
  cluster::post_in_pieces(
      *mail_, from, bytes.subspan(head.offset, head.bytes), piece_bytes_max,
      [&](std::size_t done, std::span<const std::byte> piece) {
        post(from, kind::piece, piece_head{head.pull, head.offset + done}, piece);
      });
}

// With transfers_mutex_.
void messenger::give_in_one(net::node_id to, const pull_head& head, open_offer& o) {
  net::transfers* const way = mail_->transfers_with(to);
  const bool could_be = way != nullptr || !mail_->all_transfers().empty();
  if (!could_be || o.moves || head.in_one != 1 || head.offset != 0 || head.bytes == 0 ||
      head.bytes != o.send->from.size())
    throw cluster::malformed("a request for a transfer that there cannot be");
  // The connection has ended, or another one has taken its place: as the other end hears of that it
  // asks for pieces.
  if (way == nullptr || !cluster::retry_without_memory(
                            [&] { return way->give(to, head.pull, o.send->from, head.offer); }))
    return;
  o.moves = true;
  counts_->sent.fetch_add(1, std::memory_order_seq_cst);
}

void messenger::on_piece(net::node_id from, cluster::reader& r) {
  const auto head = r.take<piece_head>();
  const auto bytes = r.take_rest();
  fetch whole;
  {
    const std::lock_guard lock(transfers_mutex_);
    const auto found = fetches_.find(head.pull);
    if (found == fetches_.end() || found->second.from != from)
      throw cluster::malformed("a piece of a message that is not awaited");
    fetch& f = found->second;
    if (f.moves != nullptr || head.offset != f.arrived || bytes.size() > f.asked - f.arrived)
      throw cluster::malformed("a piece that does not fit its message");
    std::memcpy(f.into.data() + head.offset, bytes.data(), bytes.size());
    f.arrived += bytes.size();
    ask_for_more(found->first, f);
    if (f.arrived != f.into.size()) return;
    has_fetched(from, f.chosen, f.into.size());
    whole = f;
    fetches_.erase(found);
  }
  paths_.bytes_copied.fetch_add(whole.into.size(), memory_order_relaxed);
  post(from, kind::fetched, fetched_head{whole.offer});
  whole.receive->finish(outcome::done);
}

void messenger::on_fetched(net::node_id from, cluster::reader& r) {
  const auto head = r.take<fetched_head>();
  r.end();
  {
    const std::lock_guard lock(transfers_mutex_);
    const auto found = offers_.find(head.offer);
    if (found != offers_.end() && found->second.moves &&
        found->second.send->info.target.node() == from) {
      found->second.fetched = true;  // on_given() ends it
      return;
    }
  }
  take_offer(head.offer, from)->finish(outcome::done);
}

}  // namespace strata::messages
