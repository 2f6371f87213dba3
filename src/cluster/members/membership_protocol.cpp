// SPDX-License-Identifier: Apache-2.0
#include "cluster/members/membership_protocol.hpp"

#include <algorithm>
#include <array>

namespace strata::cluster {

membership_protocol::membership_protocol(mailer& mail, membership& members,
                                         const work_counts& counts, quiescence& quiet, hands& h)
    : mail_(mail), members_(members), counts_(counts), quiet_(quiet), hands_(h) {}

void membership_protocol::tell_others(kind k, std::span<const std::byte> payload) {
  // Who is awaited, and then told: there may be no memory for a part of it.
  awaited_ = retry_without_memory([this] { return members_.all(); });
  // Node 0 has been told of a comer before.
  std::erase_if(awaited_,
                [&](node_id n) { return n == mail_.self() || (k == kind::arrive && n == 0); });
  for (const node_id n : awaited_) mail_.say(n, k, payload);
}

void membership_protocol::change(node_id n, standing s) {
  members_.set(n, s);
  hands_.on_standing(n);
  quiet_.members_have_changed();
}

// ---- this node ----

void membership_protocol::come() {
  step_ = step::counted;
  awaited_ = {0};
  mail_.say(0, kind::arrive, {});
}

void membership_protocol::begin_to_leave() {
  if (is_leaving()) return;
  change(mail_.self(), standing::leaving);
  tell_others(kind::leaving);
}

void membership_protocol::part() {
  if (!is_leaving() || step_ != step::none) return;
  step_ = step::farewell;
  tell_others(kind::farewell);
}

void membership_protocol::on_answer(node_id from, step expected) {
  if (step_ != expected || std::erase(awaited_, from) == 0)
    throw malformed("an answer that nobody awaits");
  if (awaited_.empty()) next_step();
}

bool membership_protocol::is_no_loss(node_id node) {
  const standing s = members_.of(node);
  if (s == standing::coming) {
    members_.set(node, standing::left);
    hands_.on_standing(node);
  }
  return s == standing::coming || s == standing::absent || s == standing::left;
}

bool membership_protocol::on_lost(node_id node) {
  if (step_ != step::left) return false;
  // Others close the connection as soon as they have said their last.
  if (std::erase(awaited_, node) != 0 && awaited_.empty()) next_step();
  return true;
}

bool membership_protocol::is_known_to(node_id n) const {
  if (members_.of(mail_.self()) != standing::coming) return true;
  return step_ == step::told && std::find(awaited_.begin(), awaited_.end(), n) == awaited_.end();
}

void membership_protocol::next_step() {
  switch (step_) {
    case step::counted:
      step_ = step::told;
      tell_others(kind::arrive);
      if (!awaited_.empty()) return;
      [[fallthrough]];
    case step::told:
      step_ = step::none;
      change(mail_.self(), standing::present);
      return hands_.on_entered();
    case step::farewell: {
      if (!hands_.nothing_holds()) {
        step_ = step::none;
        tell_others(kind::stays);
        return hands_.on_stay();
      }
      hands_.last_words();
      step_ = step::left;
      const std::array<std::uint64_t, 2> mine{counts_.sent.load(std::memory_order_seq_cst),
                                              counts_.received.load(std::memory_order_seq_cst)};
      return tell_others(kind::left, std::as_bytes(std::span(mine)));
    }
    case step::left:
      return hands_.on_parted();
    case step::none:
      return;
  }
}

// ---- others ----

bool membership_protocol::on_message(node_id from, kind k, reader r) {
  const auto expect = [&](bool fine) {
    if (!fine || from == mail_.self()) throw malformed("it comes or leaves out of turn");
  };
  const bool said_farewell =
      std::find(farewells_.begin(), farewells_.end(), from) != farewells_.end();
  switch (k) {
    case kind::arrive:
      // Those who came late tell node 0 once, and everybody else once.
      expect(members_.of(from) == standing::coming);
      change(from, standing::present);
      hands_.keep_back(from, false);
      mail_.say(from, kind::known, {});
      if (is_leaving()) mail_.say(from, kind::leaving, {});
      return true;
    case kind::known:
      on_answer(from, step_ == step::counted ? step::counted : step::told);
      return true;
    case kind::leaving:
      expect(members_.of(from) == standing::present && from != 0);
      change(from, standing::leaving);
      return true;
    case kind::farewell:
      expect(members_.of(from) == standing::leaving && !said_farewell);
      retry_without_memory([&] { farewells_.push_back(from); });
      hands_.keep_back(from, true);
      mail_.say(from, kind::kept_back, {});
      return true;
    case kind::kept_back:
      on_answer(from, step::farewell);
      return true;
    case kind::stays:
      expect(said_farewell);
      std::erase(farewells_, from);
      hands_.keep_back(from, false);
      return true;
    case kind::left: {
      expect(said_farewell);
      const auto theirs = r.take<std::array<std::uint64_t, 2>>();
      r.end();
      std::erase(farewells_, from);
      mail_.say(from, kind::parted, {});
      quiet_.inherit(theirs[0], theirs[1]);
      change(from, standing::left);
      return true;
    }
    case kind::parted:
      on_answer(from, step::left);
      return true;
    default:
      return false;
  }
}

}  // namespace strata::cluster
