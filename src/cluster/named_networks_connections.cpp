// SPDX-License-Identifier: Apache-2.0
// Connections that end though both their nodes live, and are made again: what becomes of each.
#include <algorithm>
#include <utility>

#include "cluster/named_networks.hpp"
#include "strata/error.hpp"

namespace strata::cluster {
namespace {

// While the last that goes by a detour has no room there.
constexpr std::int64_t begin_anew_every_ns = 5'000'000;

}  // namespace

// ---- that end ----

// Where a node lives, what is said to it goes on. When the job ends, or a node leaves, a connection
// that was measured, and found so slow that what goes there goes by others, may end before their
// last words come.
void named_networks::on_lost(node_id peer, const std::string& why) {
  if (comes_by_spare(peer)) {
    if (!ground_.is_over()) detours_.on_spare_broken(peer);
    return;
  }
  if (lives_on(peer)) return detours_.on_broken(peer, why);
  if (rerouting_.goes_directly_to(peer)) ground_.cannot_reach(peer, why);
}

bool named_networks::comes_by_spare(node_id peer) const {
  return links_.has_spare(peer) && ground_.polled() != links_.way_to(peer);
}

bool named_networks::lives_on(node_id peer) const {
  const bool stays = members_.has(peer)
                         ? !ground_.has_said_goodbye(peer)
                         : members_.of(peer) == standing::left && !links_.is_over(peer);
  return stays && links_.outlives_connection(peer) && ground_.is_known_to(peer) &&
         !ground_.is_over();
}

bool named_networks::is_connected(node_id n) {
  return n != self_ && members_.of(n) != standing::absent && links_.way_to(n) != nullptr;
}

void named_networks::pass_on(node_id next, std::span<const std::byte> head,
                             std::span<const std::byte> payload,
                             const cluster::detours::pair_in_order& ends) {
  // That one is told when too much waits.
  if (members_.of(ends.first) == standing::absent)
    throw malformed("a detour of a node that there is not");
  links_.pass_on(next, head, payload, ends);
}

void named_networks::on_detoured(node_id n, kind k, std::span<const std::byte> payload) {
  if (!rerouting_.keeps(n, {}, k, payload)) ground_.receive(n, k, payload);
}

void named_networks::answer(node_id n, kind k, std::span<const std::byte> payload) {
  if (members_.of(n) == standing::absent) throw malformed("a detour of a node that there is not");
  if (members_.has(n)) mail_.say(n, k, {}, payload);
}

void named_networks::let_go(node_id n) {
  if (members_.of(n) != standing::left) throw malformed("the end of a node that has not left");
  links_.on_lost(n);
  reopened_.erase(n);
}

void named_networks::beat(bool listening) {
  detours_.beat();
  const links::trouble found = links_.confirm_all(listening);
  for (const node_id n : found.silent) detours_.on_silent(n);
  for (const node_id n : found.too_far)
    ground_.lose(n, "is reached by detours within detours only");
}

// ---- that are made again ----

// Of who has left there is no other end: connections to it end after that.
void named_networks::has_lost(node_id n, const net::transport* over) {
  if (!mending_ || ground_.is_over() || !members_.has(n)) return;
  if (const auto which = ground_.network_of(n, over)) mending_->lost(n, *which, time_.now_ns());
}

std::uint64_t named_networks::close(node_id n) {
  has_lost(n, links_.way_to(n));
  return links_.close(n);
}

void named_networks::drop_spare(node_id n) {
  if (const net::transport* const spare = links_.spare_to(n)) has_lost(n, spare);
  links_.drop_spare(n);
}

std::int64_t named_networks::mend(std::int64_t now_ns) {
  if (!mending_ || ground_.is_over()) return INT64_MAX;
  const std::int64_t next_ns = mending_->on_time(now_ns);
  return detours_.try_to_begin_anew() ? std::min(next_ns, now_ns + begin_anew_every_ns) : next_ns;
}

bool named_networks::connect_again(node_id n, network over) {
  if (!members_.has(n) || detours_.is_undecided(n)) return false;
  return ground_.connect(n, over);
}

std::vector<node_id> named_networks::spares() {
  std::vector<node_id> all = members_.all();
  std::erase_if(
      all, [this](node_id n) { return n == self_ || !ground_.network_of(n, links_.spare_to(n)); });
  return all;
}

void named_networks::on_not_met(node_id n, network over) {
  if (mending_) mending_->failed(n, over, time_.now_ns());
}

// Both ends do, each in its own time. What the other end says by it first waits until then. One
// that is not taken is closed with `made`.
void named_networks::on_met(node_id n, network over, std::unique_ptr<net::renewal> made) {
  if (!mending_) return;
  mending_->failed(n, over, time_.now_ns());  // so far
  if (ground_.is_over() || !members_.has(n) || links_.is_lost(n)) return;
  // The newest counts, at both ends: so who has not begun with the one before takes it, even if it
  // is about to.
  if (!reopened_.contains(n) && detours_.is_undecided(n)) return;
  if (detours_.is_broken(n)) {
    reopened_.insert_or_assign(n, reopened{over, std::move(made)});
    return detours_.on_connected(n);
  }
  net::transport& line = ground_.line_to(n, over);
  // Of the one in use the other end has just heard that it has ended; this one will, too.
  if (&line == links_.way_to(n)) return;
  if (const net::transport* const spare = links_.spare_to(n)) {
    // The other end knows that this one has ended.
    if (spare != &line) return;
    detours_.on_spare_broken(n);
  }
  try {
    if (!made->begin()) return;
  } catch (const error&) {
    return;  // what it needs is used up: another time
  }
  links_.add_spare(n, line);
  mending_->made(n, over, time_.now_ns());
}

bool named_networks::begin_anew(node_id n) {
  const reopened next = std::move(reopened_.at(n));
  reopened_.erase(n);
  bool begins = false;
  try {
    begins = next.made->begin();
  } catch (const error&) {
    // What it needs is used up.
  }
  links_.begin_anew(n, ground_.line_to(n, next.over));
  mending_->made(n, next.over, time_.now_ns());
  return begins;
}

}  // namespace strata::cluster
