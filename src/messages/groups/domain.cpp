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
bool has_gone(endpoint_id member) {
  const messages::messenger* const messenger = messages::messenger_here();
  return messenger != nullptr && !messenger->has(member.node());
}

}  // namespace

void domain::drop(endpoint_id& member) {
  member = endpoint_id();
  --members_;
}

void domain::drop_those_who_have_left() {
  for (endpoint_id& member : by_rank_) {
    if (member && has_gone(member)) drop(member);
  }
  while (!by_rank_.empty() && !by_rank_.back()) by_rank_.pop_back();
}

std::uint32_t domain::join(endpoint_id who) {
  if (!who) throw misuse_error("no endpoint can join a domain: give the id() of one");
  const std::lock_guard lock(mutex_);
  drop_those_who_have_left();
  if (has_gone(who))
    throw misuse_error("an endpoint of node " + std::to_string(who.node()) +
                       ", which has left the job, cannot join a domain");
  auto place = std::find(by_rank_.begin(), by_rank_.end(), who);
  if (place == by_rank_.end()) {
    place = std::find(by_rank_.begin(), by_rank_.end(), endpoint_id());
    if (place == by_rank_.end()) place = by_rank_.insert(by_rank_.end(), who);
    *place = who;
    ++members_;
    joins_.fetch_add(1, std::memory_order_relaxed);
    detail::unpark(&joins_, UINT32_MAX);
  }
  return static_cast<std::uint32_t>(place - by_rank_.begin());
}

bool domain::leave(endpoint_id who) {
  const std::lock_guard lock(mutex_);
  drop_those_who_have_left();
  const auto place = std::find(by_rank_.begin(), by_rank_.end(), who);
  if (!who || place == by_rank_.end()) return false;
  drop(*place);
  while (!by_rank_.empty() && !by_rank_.back()) by_rank_.pop_back();
  return true;
}

std::uint32_t domain::size() {
  const std::lock_guard lock(mutex_);
  drop_those_who_have_left();
  return members_;
}

void domain::await_size(std::uint32_t n) {
  struct {
    const std::atomic<std::uint32_t>* joins;
    std::uint32_t seen;
  } question{&joins_, 0};
  // Asked with the address's queue locked: whoever joins afterwards finds who waits there.
  const auto nobody_has_joined = [](void* q) {
    const auto& it = *static_cast<const decltype(question)*>(q);
    return it.joins->load(std::memory_order_relaxed) == it.seen;
  };
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      drop_those_who_have_left();
      if (members_ >= n) return;
      question.seen = joins_.load(std::memory_order_relaxed);
    }
    // Those who leave with their node wake nobody: they make no domain larger.
    (void)detail::park_in_job({.what = "members of a domain",
                               .address = &joins_,
                               .still = nobody_has_joined,
                               .argument = &question});
  }
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
