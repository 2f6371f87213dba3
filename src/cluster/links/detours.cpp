// SPDX-License-Identifier: Apache-2.0
#include "cluster/links/detours.hpp"

#include <algorithm>
#include <utility>

#include "cluster/links/detour_words.hpp"
#include "cluster/words/retry_without_memory.hpp"

namespace strata::cluster {
namespace {

using detour_words::count_word;
using detour_words::head;
using detour_words::hops_max;
using detour_words::packed;
using detour_words::take_count;
using detour_words::take_word;
using detour_words::word;

constexpr unsigned depth_max = 8;

bool uses(const detours::path& way, node_id self, const detours::pair& ends) {
  for (node_id last = self; const node_id n : way) {
    if (detours::pair(std::minmax(last, n)) == ends) return true;
    last = n;
  }
  return false;
}

// For what n has said where whoever calls is not to blame for it.
template <class What>
void handle_of(node_id n, detours::hands& h, What what) {
  try {
    what();
  } catch (const malformed& e) {
    h.lose(n, std::string("it has sent nonsense: ") + e.what());
  }
}

}  // namespace

std::vector<std::byte> detour_head(node_id source, kind k, const detours::path& way) {
  return detour_words::pack(
      {source, static_cast<net::message_kind>(k), 0, static_cast<std::uint16_t>(way.size())}, way);
}

detours::detours(node_id self, node_id nodes, const words& known, hands& h)
    : self_(self), nodes_(nodes), hands_(h), about_connections_(known) {
  for (const auto& [ends, number] : known) {
    if (number % 2 != 0) cuts_.insert(ends);
  }
}

std::uint32_t detours::number_of(const pair& ends) const {
  const auto found = about_connections_.find(ends);
  return found == about_connections_.end() ? 0 : found->second;
}

bool detours::on_message(node_id from, kind k, reader r) {
  if (k == kind::detour) {
    pass_on(r);
    return true;
  }
  if (k == kind::resume) {
    on_resume_by_spare(from, r);
    return true;
  }
  if (k == kind::unheard) {
    on_unheard(from, r);
    return true;
  }
  if (k == kind::gone) {
    on_gone(r);
    return true;
  }
  if (k != kind::cut_off) return false;
  const word w = take_word(r, nodes_);
  if (w.lower != self_ && w.higher != self_) {
    hear({w.lower, w.higher}, w.number, from);
    return true;
  }
  // The other end knows of the end first; of a new connection each of the two knows by itself.
  const node_id other = w.lower == self_ ? w.higher : w.lower;
  if (w.number % 2 == 0 || w.number <= number_of(with(other))) return true;
  const auto found = broken_.find(other);
  if (found != broken_.end() && w.number > found->second.number + 1) {
    found->second.ended_again = true;
    return true;
  }
  on_spare_broken(other);
  on_broken(other, "gave up the connection");
  return true;
}

void detours::learn(const words& about_connections) {
  for (const auto& [ends, number] : about_connections) {
    if (ends.first != self_ && ends.second != self_) hear(ends, number, self_);
  }
}

void detours::on_broken(node_id n, const std::string& why) {
  if (!hands_.is_connected(n) || broken_.contains(n)) return;
  complaints_.erase(n);
  neighbour& there = broken_[n];
  there.why = why;
  there.number = number_of(with(n));
  there.come = hands_.close(n);
  there.by_spare =
      hands_.say_by_spare(n, kind::resume, packed(count_word{there.come, there.number}).bytes());
  if (!there.by_spare) cut(n);
}

void detours::on_spare_broken(node_id n) {
  hands_.drop_spare(n);
  const auto found = broken_.find(n);
  if (found == broken_.end() || !found->second.by_spare) return;
  found->second.by_spare = false;
  cut(n);
}

void detours::beat() {
  std::vector<node_id> silent;
  for (auto& [n, there] : broken_) {
    if (there.by_spare && ++there.beats > 2) silent.push_back(n);
  }
  for (const node_id n : silent) on_spare_broken(n);
  std::vector<node_id> hopeless;
  for (auto& [n, c] : complaints_) {
    // The other end's beats are not ours.
    const bool is_new = std::exchange(c.is_new, false);
    c.beats += is_new ? 1 : 0;
    c.pauses = is_new ? 0 : c.pauses + 1;
    const bool nothing_comes = hands_.come(n) < c.given;
    if (c.pauses == 0 && c.beats > (nothing_comes ? 1U : 3U)) hopeless.push_back(n);
  }
  std::erase_if(complaints_, [](const auto& c) { return c.second.pauses > 1; });
  for (const node_id n : hopeless) on_broken(n, "is not heard");
}

void detours::hear(const pair& ends, std::uint32_t number, node_id heard_from) {
  if (number <= number_of(ends)) return;
  about_connections_[ends] = number;
  const bool has_ended = number % 2 != 0;
  if (has_ended)
    cuts_.insert(ends);
  else
    cuts_.erase(ends);
  const writer said = packed(word{ends.first, ends.second, number});
  for (unsigned i = 0; i < nodes_; ++i) {
    const auto n = static_cast<node_id>(i);
    if (n == self_ || n == heard_from || !hands_.is_connected(n) || has_gone(n)) continue;
    // Who goes on by a spare connection hears it then; who is reached by a detour, from others.
    const auto broken = broken_.find(n);
    if (broken == broken_.end() || broken->second.by_spare)
      hands_.say(n, kind::cut_off, said.bytes(), {});
  }
  hands_.on_word(ends, number);
  if (!has_ended) return;
  for (auto& [n, there] : broken_) {
    if (!there.resumed && !there.by_spare && (there.way.empty() || uses(there.way, self_, ends)))
      look_for_way(n, there);
  }
}

// The other end may hear of it twice then.
void detours::look_for_way(node_id n, neighbour& there) {
  there.way = way_to(n, cuts_);
  if (there.way.empty()) return hands_.cannot_reach(n, there.why);
  say_around(there.way, kind::resume, packed(count_word{there.come, there.number}).bytes());
}

// Not behind what waits for n.
void detours::say_around(const path& way, kind k, std::span<const std::byte> payload) {
  hands_.say(way.front(), kind::detour, detour_head(self_, k, way), payload);
}

void detours::on_left(node_id n) {
  for (auto& [other, there] : broken_) {
    if (other != n && std::find(there.way.begin(), there.way.end(), n) != there.way.end())
      leave_way(other, there);
  }
}

void detours::say_gone() {
  for (unsigned i = 0; i < nodes_; ++i) {
    const auto n = static_cast<node_id>(i);
    if (hands_.is_connected(n) && !has_gone(n))
      hands_.say(n, kind::gone, std::as_bytes(std::span(&self_, 1)), {});
  }
}

void detours::on_gone(reader r) {
  const auto n = r.take<node_id>();
  if (!r.empty() || n >= nodes_ || n == self_) throw malformed("a word about who has gone");
  if (has_gone(n)) return;
  hands_.let_go(n);
  gone_.insert(n);
  broken_.erase(n);
  complaints_.erase(n);
}

void detours::leave_way(node_id n, neighbour& there) {
  if (!there.resumed) return look_for_way(n, there);
  path way = way_to(n, cuts_);
  if (way.empty()) return hands_.cannot_reach(n, there.why);
  there.way = std::move(way);
  hands_.go_by_another(n, there.way);
  const auto [lower, higher] = with(n);
  if (there.said_new)
    say_around(there.way, kind::cut_off, packed(word{lower, higher, there.number + 1}).bytes());
  // Else it still waits behind others.
  if (there.said_last && hands_.has_ended_detour(n))
    say_around(there.way, kind::cut_off, packed(word{lower, higher, there.number + 2}).bytes());
}

detours::path detours::way_to(node_id n, const std::set<pair>& cuts) const {
  path way;
  for (node_id at = self_; at != n; at = way.back()) {
    const routes::way next = hands_.ways_without(at, cuts).to(n);
    if (next.hops == 0 || way.size() == hops_max) return {};
    way.push_back(next.next);
  }
  return way;
}

void detours::on_silent(node_id n) {
  if (broken_.contains(n)) return;
  const std::uint64_t given = hands_.given(n);
  const auto word = std::as_bytes(std::span(&given, 1));
  (void)hands_.say_by_spare(n, kind::unheard, word);
  std::set<pair> cuts = cuts_;
  cuts.insert(std::minmax(self_, n));
  const path way = way_to(n, cuts);
  if (!way.empty()) say_around(way, kind::unheard, word);
}

void detours::pass_on(reader r) {
  auto h = r.take<head>();
  if (h.hops < 2 || h.hops > hops_max || h.at >= h.hops || h.source >= nodes_ || h.source == self_)
    throw malformed("a detour of so many nodes");
  // Nobody else knows of what it carries any more.
  path way = retry_without_memory([&] { return path(h.hops); });
  for (node_id& n : way) n = r.take<node_id>();
  if (way[h.at] != self_ || way.back() == h.source ||
      std::any_of(way.begin(), way.end(), [&](node_id n) { return n >= nodes_; }))
    throw malformed("a detour that leads nowhere");
  if (++h.at != h.hops) {
    const node_id next = way[h.at];
    if (!hands_.is_connected(next)) throw malformed("a detour over no network");
    if (has_gone(next))
      return hands_.answer(h.source, kind::gone, std::as_bytes(std::span(&next, 1)));
    const auto packed_head = retry_without_memory([&] { return detour_words::pack(h, way); });
    return hands_.pass_on(next, packed_head, r.take_rest(), {h.source, way.back()});
  }
  if (!hands_.is_connected(h.source)) throw malformed("a detour around no connection");
  hands_.heard_of(h.source);
  ++depth_;
  handle_of(h.source, hands_, [&] { on_arrival(h.source, static_cast<kind>(h.k), r); });
  --depth_;
}

void detours::on_arrival(node_id from, kind k, reader r) {
  if (depth_ > depth_max) throw malformed("detours within detours");
  if (k == kind::unheard) return on_unheard(from, r);
  if (k == kind::resume) {
    const auto [come, number] = take_count(r);
    return on_resume(from, come, number);
  }
  if (k == kind::cut_off) {
    reader look = r;
    const word w = take_word(look, nodes_);
    if (pair(w.lower, w.higher) == with(from)) {
      if (broken_.contains(from)) return on_word_of(from, w.number);
      // It has been said by two ways: see leave_way().
      if (w.number <= number_of(with(from))) return;
    }
  }
  if (!broken_.contains(from)) throw malformed("a detour around a connection that is there");
  hands_.on_detoured(from, k, r.take_rest());
}

void detours::on_unheard(node_id from, reader r) {
  const auto given = r.take<std::uint64_t>();
  if (!r.empty()) throw malformed("a longer word about a connection");
  complaint& c = complaints_[from];
  c.given = given;
  c.is_new = true;
}

// What it has said of the new connection itself comes late by a detour around that.
void detours::on_word_of(node_id from, std::uint32_t number) {
  neighbour& there = broken_.at(from);
  if (number <= there.number) return;
  if (number > there.number + 2) throw malformed("a word about a connection that there is not yet");
  (number % 2 != 0 ? there.other_has_new : there.heard_last) = true;
  try_to_begin_anew(from);
}

void detours::on_connected(node_id n) {
  broken_.at(n).has_new = true;
  try_to_begin_anew(n);
}

void detours::forget_new(node_id n) {
  const auto found = broken_.find(n);
  if (found != broken_.end()) found->second.has_new = false;
}

bool detours::try_to_begin_anew() {
  std::vector<node_id> ending;
  for (const auto& [n, there] : broken_) {
    if (there.said_last && there.heard_last) ending.push_back(n);
  }
  for (const node_id n : ending) try_to_begin_anew(n);
  return std::any_of(ending.begin(), ending.end(), [this](node_id n) { return is_undecided(n); });
}

void detours::try_to_begin_anew(node_id n) {
  const auto found = broken_.find(n);
  neighbour& there = found->second;
  if (!there.resumed || !there.has_new) return;
  const auto [lower, higher] = with(n);
  if (!std::exchange(there.said_new, true))
    hands_.say(n, kind::cut_off, packed(word{lower, higher, there.number + 1}).bytes(), {});
  if (!there.other_has_new) return;
  if (!std::exchange(there.said_last, true))
    hands_.end_detour(n, kind::cut_off, packed(word{lower, higher, there.number + 2}).bytes());
  if (!there.heard_last || !hands_.has_ended_detour(n)) return;
  const neighbour was = std::move(there);
  broken_.erase(found);
  complaints_.erase(n);
  const bool has_ended = !hands_.begin_anew(n);
  hear(with(n), was.number + 2, self_);
  if (has_ended || was.ended_again) on_broken(n, "gave up the connection");
  // What was missing last may not have come from n.
  if (was.come_again) handle_of(n, hands_, [&] { on_resume(n, *was.come_again, was.number + 2); });
}

void detours::on_resume(node_id from, std::uint64_t come, std::uint32_t number) {
  const auto found = broken_.find(from);
  const std::uint32_t current =
      found != broken_.end() ? found->second.number : number_of(with(from));
  if (number < current) return;  // of an earlier connection
  if (number > current) {
    if (found == broken_.end() || number > current + 2)
      throw malformed("a word about a connection that there is not yet");
    found->second.ended_again = true;
    found->second.come_again = come;
    return;
  }
  on_spare_broken(from);
  on_broken(from, "gave up the connection");
  neighbour& there = broken_.at(from);
  if (there.resumed || there.way.empty()) return;  // heard already, or lost
  there.resumed = true;
  hands_.go_by(from, come, there.way);
  try_to_begin_anew(from);
}

void detours::on_resume_by_spare(node_id from, reader r) {
  const auto [come, number] = take_count(r);
  if (number != number_of(with(from))) return;  // another word about that is on its way
  on_broken(from, "gave up the connection");
  // It may have been given up here, of which the other end is about to hear.
  const auto found = broken_.find(from);
  if (found == broken_.end() || !found->second.by_spare) return;
  broken_.erase(found);
  hands_.go_on(from, come);
}

}  // namespace strata::cluster
