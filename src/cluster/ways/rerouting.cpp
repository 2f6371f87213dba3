// SPDX-License-Identifier: Apache-2.0
#include "cluster/ways/rerouting.hpp"

#include <algorithm>
#include <utility>

namespace strata::cluster {

rerouting::rerouting(mailer& mail, const way_plan& first, hands& h)
    : mail_(mail), hands_(h), plan_(first), arrivals_(mail.nodes()) {
  set_ways(compute(plan_));
}

std::shared_ptr<const routes> rerouting::ways() const {
  const std::lock_guard lock(mutex_);
  return ways_;
}

void rerouting::set_ways(std::shared_ptr<const routes> w) {
  const std::lock_guard lock(mutex_);
  ways_ = std::move(w);
}

// What goes by a plan's number goes by its ways.
std::shared_ptr<const routes> rerouting::compute(const way_plan& p) {
  auto w = std::make_shared<const routes>(hands_.ways_by(p));
  hands_.set_table(p.number, *w);
  return w;
}

bool rerouting::may_be_gateway() const {
  return ways_->is_gateway() || (other_ways_ != nullptr && other_ways_->is_gateway());
}

bool rerouting::goes_directly_to(node_id neighbour) const {
  return ways_->is_neighbour(neighbour) ||
         (other_ways_ != nullptr && other_ways_->is_neighbour(neighbour));
}

// ---- what is said ----

void rerouting::tell_others(kind k, std::span<const std::byte> payload) {
  for (const node_id n : next_->members) {
    if (n != mail_.self() && mail_.members().has(n)) mail_.say(n, k, payload);
  }
}

void rerouting::tell_number(node_id n, kind k) {
  mail_.say(n, k, std::as_bytes(std::span(&next_->number, 1)));
}

void rerouting::answer(kind k) {
  if (mail_.self() != 0) return tell_number(0, k);
  on_answer(0, k == kind::ways_ready ? order::preparing : order::changing);
}

void rerouting::take_number(reader& r) const {
  if (r.take<std::uint32_t>() != (next_ ? next_->number : plan_.number) || !r.empty())
    throw malformed("a word about ways that nobody goes");
}

bool rerouting::on_message(node_id from, kind k, reader r) {
  const auto expect = [](bool fine) {
    if (!fine) throw malformed("it speaks of other ways out of turn");
  };
  const bool is_first = mail_.self() == 0;
  // Who has left may have heard of a change after its last word as a member.
  if (k >= kind::next_ways && k <= kind::saw_leave && mail_.members().of(from) == standing::left)
    return true;
  switch (k) {
    case kind::next_ways:
      expect(from == 0 && !is_first && !next_);
      on_plan(unpack_plan(r, mail_.nodes()));
      return true;
    case kind::ways_ready:
    case kind::ways_done:
      expect(is_first && next_);
      take_number(r);
      on_answer(from, k == kind::ways_ready ? order::preparing : order::changing);
      return true;
    case kind::use_ways:
      expect(from == 0 && !is_first && next_ && step_ == step::ready);
      take_number(r);
      change();
      return true;
    case kind::way_ends:
      // After a loss nobody keeps account of them.
      if (stopped_ && !arrivals_.awaits(from)) return true;
      expect(next_ && arrivals_.awaits(from));
      take_number(r);
      on_end(from);
      return true;
    case kind::ways_over:
      expect(from == 0 && !is_first && next_ && step_ == step::done);
      take_number(r);
      on_over();
      return true;
    case kind::spare_me:
      expect(is_first && from != 0 && r.empty());
      wishes_.push_back(from);
      try_to_begin();
      return true;
    case kind::spared:
      expect(from == 0 && !is_first && unanswered_wishes_ != 0);
      on_spared(r);
      return true;
    case kind::forwards:
      expect(is_first && from != 0 && r.empty());
      coming_.erase(from);
      offers_.insert(from);
      try_to_begin();
      return true;
    case kind::saw_leave: {
      const auto gone = r.take<node_id>();
      expect(is_first && from != 0 && r.empty() && gone < mail_.nodes() && gone != 0);
      on_saw_leave(from, gone);
      return true;
    }
    default:
      return false;
  }
}

// ---- every node ----

bool rerouting::changes_between(node_id n) const {
  return !(ways_->is_neighbour(n) && other_ways_->is_neighbour(n));
}

void rerouting::on_plan(way_plan p) {
  const auto takes_part = [&](node_id n) {
    return std::binary_search(p.members.begin(), p.members.end(), n);
  };
  if (p.number != plan_.number + 1 || !takes_part(mail_.self()))
    throw malformed("ways out of turn");
  hands_.learn(p.about_connections);
  other_ways_ = compute(p);
  next_ = std::move(p);
  step_ = step::preparing;
  for (const node_id n : next_->members) {
    if (n == mail_.self() || !mail_.members().has(n)) continue;
    if (other_ways_->to(n).hops == 0) throw malformed("ways that do not lead to all");
    if (changes_between(n) && !stopped_) arrivals_.await(n, ways_->is_neighbour(n), next_->number);
  }
  hands_.on_ways();
  try_to_be_ready();
}

void rerouting::try_to_be_ready() {
  if (!next_ || step_ != step::preparing || !hands_.has_connections_for(*other_ways_)) return;
  step_ = step::ready;
  answer(kind::ways_ready);
}

void rerouting::change() {
  const std::shared_ptr<const routes> before = ways_;
  for (unsigned i = 0; i < mail_.nodes(); ++i) {
    const auto n = static_cast<node_id>(i);
    if (n == mail_.self()) continue;
    const bool says_so = changes_between(n) && mail_.members().has(n) &&
                         std::binary_search(next_->members.begin(), next_->members.end(), n);
    hands_.change_way(n, other_ways_->to(n).next, next_->number, says_so);
  }
  set_ways(std::exchange(other_ways_, before));
  plan_ = *next_;
  step_ = step::changed;
  hands_.on_ways();
  look_whether_done();
}

void rerouting::on_end(node_id from) {
  release(from);
  look_whether_done();
}

void rerouting::release(node_id from) {
  for (const message_copy& m : arrivals_.ended(from)) hands_.on_kept(from, m.k, m.payload);
}

void rerouting::look_whether_done() {
  if (!next_ || step_ != step::changed || arrivals_.awaits_somebody()) return;
  step_ = step::done;
  answer(kind::ways_done);
}

void rerouting::on_over() {
  next_.reset();
  other_ways_.reset();
  hands_.on_ways();
}

void rerouting::expect(node_id n) {
  set_ways(compute(plan_));
  hands_.change_way(n, ways_->to(n).next, plan_.number, false);
  // Who has changed knows the old ways no more; nor does anybody go by them to one that comes.
  if (next_ && step_ != step::changed && step_ != step::done) other_ways_ = compute(*next_);
  hands_.on_ways();
}

void rerouting::ask_to_let_come(node_id n) {
  at_door_.push_back(n);
  try_to_begin();
}

void rerouting::on_connected() { try_to_be_ready(); }

void rerouting::on_left(node_id n) {
  release(n);
  look_whether_done();
  if (mail_.self() != 0) {
    if (mail_.members().has(mail_.self()))
      mail_.say(0, kind::saw_leave, std::as_bytes(std::span(&n, 1)));
    return;
  }
  std::set<node_id> others;
  const std::set<node_id> knew = std::exchange(knew_first_[n], {});
  for (const node_id m : mail_.members().all()) {
    if (m != 0 && !knew.contains(m)) others.insert(m);
  }
  if (!others.empty()) going_[n] = std::move(others);
  for (auto& [gone, awaited] : going_) awaited.erase(n);
  std::erase_if(going_, [](const auto& g) { return g.second.empty(); });
  coming_.erase(n);
  offers_.erase(n);
  std::erase(at_door_, n);
  std::erase(wishes_, n);
  std::erase(granted_, n);
  if (awaited_.erase(n) != 0 && awaited_.empty()) next_step();
  try_to_begin();
}

void rerouting::offer_to_forward() { mail_.say(0, kind::forwards, {}); }

void rerouting::ask_to_be_spared() {
  ++unanswered_wishes_;
  mail_.say(0, kind::spare_me, {});
}

void rerouting::on_spared(reader& r) {
  const auto is = r.take<std::uint8_t>();
  r.end();
  --unanswered_wishes_;
  hands_.on_spared(is != 0);
}

void rerouting::set_costs(std::vector<way_plan::measurement> measured) {
  measured_ = std::move(measured);
  try_to_begin();
}

void rerouting::stop() {
  stopped_ = true;
  // Nobody waits for an answer from the job any more.
  wishes_.clear();
  at_door_.clear();
}

void rerouting::give_up() {
  stop();
  for (unsigned n = 0; n < mail_.nodes(); ++n) release(static_cast<node_id>(n));
}

}  // namespace strata::cluster
