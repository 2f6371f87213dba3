// SPDX-License-Identifier: Apache-2.0
#include "strata/domain.hpp"

#include <algorithm>
#include <mutex>
#include <string>

#include "messages/current_messenger.hpp"
#include "messages/messenger.hpp"

namespace strata {

namespace {

// No member can be there any more.
bool has_gone(node_id_t node) {
  const messages::messenger* const messenger = messages::messenger_here();
  return messenger != nullptr && !messenger->has(node);
}

}  // namespace

// Takes no memory.
void domain::drop(std::uint32_t rank) noexcept {
  endpoint_id& member = by_rank_[rank];
  const auto node = on_node_.find(member.node());
  if (--node->second == 0) on_node_.erase(node);
  ranks_.erase(member);
  member = endpoint_id();
  first_free_ = std::min(first_free_, rank);
}

void domain::forget_last_free_ranks() noexcept {
  while (!by_rank_.empty() && !by_rank_.back()) by_rank_.pop_back();
  first_free_ = std::min(first_free_, static_cast<std::uint32_t>(by_rank_.size()));
}

void domain::drop_those_who_have_left() {
  const bool is_any_gone =
      std::ranges::any_of(on_node_, [](const auto& one) { return has_gone(one.first); });
  if (!is_any_gone) return;
  for (std::uint32_t rank = 0; rank < by_rank_.size(); ++rank) {
    if (by_rank_[rank] && has_gone(by_rank_[rank].node())) drop(rank);
  }
  forget_last_free_ranks();
}

// Those for whom there are enough. They stay until they have had the mutex.
void domain::tell_those_who_wait() noexcept {
  const auto end = awaited_.upper_bound(members());
  for (auto one = awaited_.begin(); one != end; one = awaited_.erase(one)) {
    // Release: what the members have done. Partner: await_size().
    one->second->store(true, std::memory_order_release);
    detail::unpark(one->second, 1);
  }
}

std::uint32_t domain::join(endpoint_id who) {
  if (!who || who.is_any_on_node())
    throw misuse_error("no endpoint can join a domain: give the id() of one");
  const std::lock_guard lock(mutex_);
  drop_those_who_have_left();
  if (has_gone(who.node()))
    throw misuse_error("an endpoint of node " + std::to_string(who.node()) +
                       ", which has left the job, cannot join a domain");
  if (const auto known = ranks_.find(who); known != ranks_.end()) return known->second;
  const auto ranks = static_cast<std::uint32_t>(by_rank_.size());
  std::uint32_t rank = first_free_;
  while (rank != ranks && by_rank_[rank]) ++rank;
  // All memory first.
  if (rank == ranks && by_rank_.capacity() == ranks) by_rank_.reserve(2 * std::size_t{ranks} + 1);
  const auto [on_its_node, is_first] = on_node_.try_emplace(who.node(), 0);
  try {
    ranks_.emplace(who, rank);
  } catch (...) {
    if (is_first) on_node_.erase(on_its_node);
    throw;
  }
  ++on_its_node->second;
  if (rank == ranks) by_rank_.emplace_back();
  by_rank_[rank] = who;
  // Mostly none is free, which is not to be found out by looking at all.
  first_free_ = members() == by_rank_.size() ? members() : rank + 1;
  tell_those_who_wait();
  return rank;
}

bool domain::leave(endpoint_id who) {
  const std::lock_guard lock(mutex_);
  drop_those_who_have_left();
  const auto known = ranks_.find(who);
  if (known == ranks_.end()) return false;
  drop(known->second);
  forget_last_free_ranks();
  return true;
}

std::uint32_t domain::size() {
  const std::lock_guard lock(mutex_);
  drop_those_who_have_left();
  return members();
}

void domain::await_size(std::uint32_t n) {
  std::atomic<bool> are_there{false};
  std::unique_lock lock(mutex_);
  drop_those_who_have_left();
  if (members() >= n) return;
  const auto here = awaited_.emplace(n, &are_there);
  lock.unlock();
  // Asked with the address's queue locked: whoever joins afterwards finds who waits there.
  const auto not_yet = [](void* flag) {
    return !static_cast<std::atomic<bool>*>(flag)->load(std::memory_order_relaxed);
  };
  try {
    // Acquire. Partner: tell_those_who_wait().
    while (!are_there.load(std::memory_order_acquire)) {
      (void)detail::park_in_job({.what = "members of a domain",
                                 .address = &are_there,
                                 .still = not_yet,
                                 .argument = &are_there});
    }
  } catch (...) {
    lock.lock();
    if (!are_there.load(std::memory_order_relaxed)) awaited_.erase(here);
    throw;
  }
  lock.lock();  // whoever has told this has done with it
}

domain::page domain::members_from(std::uint32_t rank) {
  const std::lock_guard lock(mutex_);
  drop_those_who_have_left();
  page p{.ranks = static_cast<std::uint32_t>(by_rank_.size())};
  if (rank >= p.ranks) return p;
  const std::uint32_t count = std::min(page::length, p.ranks - rank);
  std::copy_n(by_rank_.begin() + rank, count, p.members.begin());
  return p;
}

std::vector<endpoint_id> domain_handle::members() {
  std::vector<endpoint_id> all;
  // Wider than what is asked for: the end is another node's word.
  for (std::uint64_t rank = 0;; rank += domain::page::length) {
    const domain::page p = d_.call<&domain::members_from>(static_cast<std::uint32_t>(rank));
    for (std::uint32_t i = 0; i < domain::page::length && rank + i < p.ranks; ++i)
      all.push_back(p.members[i]);
    if (rank + domain::page::length >= p.ranks) return all;
  }
}

}  // namespace strata
