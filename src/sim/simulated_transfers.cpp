// SPDX-License-Identifier: Apache-2.0
#include "sim/simulated_transfers.hpp"

#include <algorithm>
#include <cstring>

#include "sim/simulated_job.hpp"
#include "strata/detail/check.hpp"

namespace strata::sim {
namespace {

constexpr std::size_t written_at_once = std::size_t{32} << 10;
constexpr std::uint64_t write_ns_max = 20'000;
constexpr std::uint64_t word_ns_max = 30'000;

}  // namespace

std::int64_t simulated_transfers::later(std::uint64_t ns_max) {
  return job_.in.now_ns() + 1 + static_cast<std::int64_t>(job_.in.random.below(ns_max));
}

std::size_t simulated_transfers::bytes_min(node_id) noexcept {
  return job_.model.transfer_bytes_min;
}

bool simulated_transfers::expect(node_id peer, std::uint64_t number, std::span<std::byte> into) {
  if (peer < lost_.size() && lost_[peer]) return false;
  const bool is_new = expected_.emplace(std::pair(peer, number), into).second;
  STRATA_CHECK(is_new, peer, number);
  return true;
}

bool simulated_transfers::withdraw(node_id peer, std::uint64_t number) noexcept {
  return expected_.erase({peer, number}) != 0;
}

bool simulated_transfers::give(node_id peer, std::uint64_t number, std::span<const std::byte> bytes,
                               std::uint64_t own_number) {
  if (peer < lost_.size() && lost_[peer]) return false;
  const auto m = std::make_shared<moving>(moving{.giver = self_,
                                                 .taker = peer,
                                                 .own_number = own_number,
                                                 .number = number,
                                                 .from = bytes,
                                                 .into = {}});
  under_way_.reserve(under_way_.size() + 1);
  job_.in.at(later(word_ns_max), [this, m] {
    simulated_node& there = job_.node(m->taker);
    if (!there.has_crashed() && !job_.node(self_).has_crashed()) there.transfers.begin(m);
  });
  under_way_.push_back(m);
  return true;
}

// At its taker.
void simulated_transfers::begin(const shared& m) {
  if (m->giver_knows) return;
  const auto found = expected_.find({m->giver, m->number});
  if (found == expected_.end()) return tell_giver(m, true);  // withdrawn meanwhile
  STRATA_CHECK(found->second.size() == m->from.size(), found->second.size(), m->from.size());
  m->into = found->second;
  expected_.erase(found);
  under_way_.push_back(m);
  go_on(m, 0);
}

void simulated_transfers::go_on(const shared& m, std::size_t done) {
  if (m->giver_knows || m->taker_knows || job_.node(m->giver).has_crashed() ||
      job_.node(m->taker).has_crashed()) {
    return;
  }
  const std::size_t n = std::min(written_at_once, m->from.size() - done);
  std::memcpy(m->into.data() + done, m->from.data() + done, n);
  done += n;
  job_.in.at(later(write_ns_max), [this, m, done] {
    if (done != m->from.size()) return go_on(m, done);
    if (job_.node(self_).has_crashed()) return;
    arrive(m, true);
    tell_giver(m, true);
  });
}

void simulated_transfers::arrive(const shared& m, bool whole) {
  if (std::exchange(m->taker_knows, true)) return;
  std::erase(under_way_, m);
  const simulated_node::as_its_worker here(job_.node(self_));
  job_.node(self_).messenger.on_arrived(m->giver, m->number, whole);
}

// By whoever has it; the giver hears later.
void simulated_transfers::tell_giver(const shared& m, bool whole) {
  job_.in.at(later(word_ns_max), [this, m, whole] {
    simulated_node& giver = job_.node(m->giver);
    if (giver.has_crashed() || std::exchange(m->giver_knows, true)) return;
    std::erase(giver.transfers.under_way_, m);
    const simulated_node::as_its_worker there(giver);
    giver.messenger.on_given(m->taker, m->own_number, whole);
  });
}

void simulated_transfers::lose(node_id peer) {
  if (lost_.size() <= peer) lost_.resize(peer + std::size_t{1});
  lost_[peer] = true;
  std::vector<std::uint64_t> awaited;
  for (const auto& [key, into] : expected_) {
    if (key.first == peer) awaited.push_back(key.second);
  }
  for (const std::uint64_t number : awaited) {
    expected_.erase({peer, number});
    job_.in.at(later(word_ns_max), [this, peer, number] {
      const simulated_node::as_its_worker here(job_.node(self_));
      job_.node(self_).messenger.on_arrived(peer, number, false);
    });
  }
  for (const shared& m : std::vector(under_way_)) {
    if (m->giver == self_ && m->taker == peer) tell_giver(m, false);
    if (m->taker == self_ && m->giver == peer) {
      job_.in.at(later(word_ns_max), [this, m] { arrive(m, false); });
    }
  }
}

}  // namespace strata::sim
