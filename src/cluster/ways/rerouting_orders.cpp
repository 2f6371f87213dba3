// SPDX-License-Identifier: Apache-2.0
// What node 0 orders: when ways change, from what others want and offer, and who may come.
#include <algorithm>
#include <utility>

#include "cluster/ways/rerouting.hpp"

namespace strata::cluster {

void rerouting::try_to_begin() {
  if (mail_.self() != 0 || stopped_ || order_ != order::none || !coming_.empty() || !going_.empty())
    return;
  way_plan p = plan_next();
  // Somebody is lost, and whoever was its neighbour last is about to say so. What others want and
  // offer has its turn then.
  const bool connects_otherwise = p.about_connections != plan_.about_connections;
  if (connects_otherwise && !reaches_all(p)) return;
  offers_.clear();
  grant_wishes(p);
  if (p.forwarders != plan_.forwarders || p.measured != plan_.measured || connects_otherwise)
    return begin(p);
  for (const node_id n : std::exchange(granted_, {})) tell_whether_spared(n, true);
  if (at_door_.empty()) return;
  const node_id n = at_door_.front();
  at_door_.pop_front();
  coming_.insert(n);
  hands_.let_come(n);
}

void rerouting::on_saw_leave(node_id from, node_id gone) {
  if (mail_.members().of(gone) != standing::left) {
    knew_first_[gone].insert(from);
    return;
  }
  const auto found = going_.find(gone);
  if (found == going_.end()) return;
  found->second.erase(from);
  if (found->second.empty()) going_.erase(found);
  try_to_begin();
}

void rerouting::on_word(const way_plan::pair& ends, std::uint32_t number) {
  // What others are told to say over one that is left out goes around it.
  if (about_connections_.size() == way_plan::cuts_max && !about_connections_.contains(ends)) return;
  about_connections_[ends] = number;
  try_to_begin();
}

// From what everybody offers.
way_plan rerouting::plan_next() {
  way_plan p = plan_;
  ++p.number;
  p.members = mail_.members().all();
  p.measured = measured_;
  std::erase_if(about_connections_, [&](const auto& c) {
    return !mail_.members().has(c.first.first) || !mail_.members().has(c.first.second);
  });
  p.about_connections = about_connections_;
  for (const node_id n : offers_) {
    if (!p.forwards(n))
      p.forwarders.insert(std::upper_bound(p.forwarders.begin(), p.forwarders.end(), n), n);
  }
  std::erase_if(p.forwarders, [&](node_id n) { return !mail_.members().has(n); });
  return p;
}

void rerouting::grant_wishes(way_plan& p) {
  for (const node_id n : std::exchange(wishes_, {})) {
    way_plan without = p;
    std::erase(without.forwarders, n);
    if (without.forwarders != p.forwarders && !reaches_all(without)) {
      tell_whether_spared(n, false);
      continue;
    }
    p = std::move(without);
    granted_.push_back(n);
  }
}

bool rerouting::reaches_all(const way_plan& p) {
  // Node 0 forwards: whom it reaches reach each other.
  const routes w = hands_.ways_by(p);
  return std::all_of(p.members.begin(), p.members.end(),
                     [&](node_id n) { return n == mail_.self() || w.to(n).hops != 0; });
}

void rerouting::tell_whether_spared(node_id n, bool is) {
  const auto word = static_cast<std::uint8_t>(is ? 1 : 0);
  mail_.say(n, kind::spared, std::as_bytes(std::span(&word, 1)));
}

void rerouting::begin(const way_plan& p) {
  order_ = order::preparing;
  is_changing_.store(true, std::memory_order_release);
  awaited_ = {p.members.begin(), p.members.end()};
  const writer packed = pack(p);
  for (const node_id n : p.members) {
    if (n != mail_.self()) mail_.say(n, kind::next_ways, packed.bytes());
  }
  on_plan(p);
}

void rerouting::on_answer(node_id from, order expected) {
  if (order_ != expected || awaited_.erase(from) == 0)
    throw malformed("an answer about ways that nobody awaits");
  if (awaited_.empty()) next_step();
}

void rerouting::next_step() {
  switch (order_) {
    case order::preparing:
      order_ = order::changing;
      for (const node_id n : next_->members) {
        if (mail_.members().has(n)) awaited_.insert(n);
      }
      tell_others(kind::use_ways, std::as_bytes(std::span(&next_->number, 1)));
      return change();
    case order::changing:
      tell_others(kind::ways_over, std::as_bytes(std::span(&next_->number, 1)));
      order_ = order::none;
      on_over();
      is_changing_.store(false, std::memory_order_release);
      hands_.on_changed(plan_);
      // Who is spared is told when nothing else is to change: a detour may lead by it so far.
      return try_to_begin();
    case order::none:
      return;
  }
}

}  // namespace strata::cluster
