// SPDX-License-Identifier: Apache-2.0
// Large messages within a host that both ends copy: the receiver reads pieces out of the sender's
// memory from the front while an idle worker of the sender's writes others into the receiver's from
// the back. (Requirements P6, P9.)
#include <sched.h>

#include <algorithm>
#include <ctime>

#include "messages/giving_way.hpp"
#include "messages/messenger.hpp"
#include "messages/process_memory.hpp"
#include "messages/run_for_others.hpp"
#include "os/clock.hpp"
#include "strata/detail/join.hpp"

namespace strata::messages {

using cluster::kind;
using net::joint_copies;
using std::memory_order_relaxed;

namespace {

// Smaller ones are read by the receiver before anybody could help; before anybody could be woken
// and help.
constexpr std::size_t together_min = std::size_t{1} << 20, waking_min = std::size_t{2} << 20;
// So much is claimed at once: the one who is ready first waits for half as much.
// (docs/experiments.md)
constexpr std::size_t piece_bytes = std::size_t{512} << 10;

std::size_t piece_bytes_of(std::size_t bytes) noexcept {
  return std::max(piece_bytes, bytes / (joint_copies::copy::pieces_max / 2));
}
unsigned pieces_of(std::size_t bytes, std::size_t each) noexcept {
  return static_cast<unsigned>((bytes + each - 1) / each);
}

// One of so many bytes.
struct range {
  std::size_t begin, size;
};
range piece_at(unsigned piece, std::size_t each, std::size_t bytes) noexcept {
  const std::size_t begin = piece * each;
  return {begin, std::min(each, bytes - begin)};
}

}  // namespace

messenger::joint messenger::take_copy(net::node_id node, std::size_t bytes) noexcept {
  if (bytes < together_min || !writes_here_[node].load(memory_order_relaxed)) return {};
  joint_copies* const way = mail_->copies_with(node);
  if (way == nullptr || (bytes < waking_min && !way->is_attended(node))) return {};
  for (std::size_t i = 0; i < copies_.size(); ++i) {
    // Acquire: what the thread before has done with it. Partner: give_back().
    if (!copies_[i].exchange(true, std::memory_order_acquire))
      return {way->copies_of(self_) + i, i};
  }
  return {};
}

void messenger::give_back(const joint& j) noexcept {
  // Partner: take_copy().
  if (j.copy != nullptr) copies_[j.number].store(false, std::memory_order_release);
}

bool messenger::read_together(const joint& j, const arrival::offered& offer, net::node_id node,
                              std::span<std::byte> into) {
  joint_copies::copy& c = *j.copy;
  const std::size_t each = piece_bytes_of(into.size());
  const unsigned pieces = pieces_of(into.size(), each);
  const auto read = [&](unsigned piece) {
    const range r = piece_at(piece, each, into.size());
    return read_part(offer, r.begin, into.subspan(r.begin, r.size));
  };
  const process_mark mark = own_mark();
  post(node, kind::help,
       help_head{.offer = offer.id,
                 .copy = j.number,
                 .turn = c.open(),
                 .bytes = into.size(),
                 .piece_bytes = each,
                 .address = reinterpret_cast<std::uintptr_t>(into.data()),
                 .door = own_door(),
                 .mark_address = mark.address,
                 .mark = mark.value,
                 .process = own_process()});
  bool whole = true;
  for (;;) {
    give_way_to_others();  // with no piece claimed, which the helper may copy meanwhile
    const unsigned piece = c.claim(pieces);
    if (piece == c.none) break;
    whole = whole && read(piece);
  }
  wait_for_helper(c, offer);
  const unsigned left = c.left_over(pieces);
  if (left == c.none) return whole;
  writes_here_[node].store(false, memory_order_relaxed);
  return whole && left < pieces && read(left);
}

// It has one piece to copy at most. Its process may have lost its processor, or be gone.
void messenger::wait_for_helper(const joint_copies::copy& c, const arrival::offered& offer) {
  constexpr unsigned spins = 1000, yields = 1000;
  constexpr timespec pause{.tv_sec = 0, .tv_nsec = 100'000};
  constexpr std::int64_t given_up_after_ns = 1'000'000'000;
  for (unsigned i = 0; i < spins && !c.is_alone(); ++i) os::spin_pause();
  for (unsigned i = 0; i < yields && !c.is_alone(); ++i) (void)::sched_yield();
  std::int64_t lost_since_ns = 0;
  while (!c.is_alone()) {
    if (!is_there(static_cast<std::uint32_t>(offer.process), {offer.mark_address, offer.mark}))
      return;  // nobody is there who could write
    // A lost node may have been stopped just before it wrote, and go on one day.
    if (broken_.load(std::memory_order_acquire)) {
      const std::int64_t now = os::now_ns();
      if (lost_since_ns == 0) lost_since_ns = now;
      if (now - lost_since_ns > given_up_after_ns) return close_door();
    }
    ::nanosleep(&pause, nullptr);
  }
}

void messenger::on_help(net::node_id from, cluster::reader& r) {
  const auto head = r.take<help_head>();
  r.end();
  joint_copies* const way = mail_->copies_with(from);
  joint_copies::copy* const theirs = way == nullptr ? nullptr : way->copies_of(from);
  if (theirs == nullptr || head.copy >= joint_copies::copies_each || head.piece_bytes == 0 ||
      head.piece_bytes > head.bytes ||
      head.bytes / head.piece_bytes >= joint_copies::copy::pieces_max)
    throw cluster::malformed("a call for help that nobody can give");
  auto help = [this, from, head, &with = theirs[head.copy]] { help_to_copy(from, head, with); };
  run_for_others(*here_, help);  // who has called for it waits
}

void messenger::help_to_copy(net::node_id to, const help_head& head, joint_copies::copy& with) {
  std::span<const std::byte> bytes;
  {
    const std::lock_guard lock(transfers_mutex_);
    const auto found = offers_.find(head.offer);
    if (found == offers_.end()) return;  // it has been fetched
    open_offer& o = found->second;
    if (o.moves || o.helped || o.send->info.target.node() != to ||
        o.send->from.size() != head.bytes)
      return;
    o.helped = true;
    bytes = o.send->from;
  }
  const unsigned pieces = pieces_of(head.bytes, head.piece_bytes);
  const auto turn = static_cast<std::uint32_t>(head.turn);
  const unsigned first = with.begin(turn, pieces);
  bool could = true;
  // Its own threads come first.
  for (unsigned piece = first; could && piece != with.none;
       piece = detail::nothing_else_is_ready() ? with.another(turn, pieces) : with.none) {
    const range r = piece_at(piece, head.piece_bytes, head.bytes);
    could = write_process(static_cast<std::uint32_t>(head.process), {head.mark_address, head.mark},
                          head.door, head.address + r.begin, bytes.data() + r.begin, r.size);
    if (could) paths_.bytes_copied.fetch_add(r.size, memory_order_relaxed);
  }
  if (first != with.none && could) paths_.helped.fetch_add(1, memory_order_relaxed);
  // Before done(), with which the receiver may end the offer, and after which nobody reads here.
  request* send = nullptr;
  {
    const std::lock_guard lock(transfers_mutex_);
    const auto found = offers_.find(head.offer);
    if (found != offers_.end()) {
      found->second.helped = false;
      if (is_settled(to)) {
        send = found->second.send;
        offers_.erase(found);
      }
    }
  }
  if (first != with.none) with.done(turn, could);
  if (send != nullptr) send->finish(end_without(to));
}

}  // namespace strata::messages
