// SPDX-License-Identifier: Apache-2.0
// Sets of endpoints that change while the program runs (pCoR's domains), for who wants to know who
// takes part.
//
//   strata::named<strata::domain> workers("workers");                    // on one node
//   auto all = strata::domain_handle::await("workers");                  // on any
//   const std::uint32_t rank = all.join(strata::this_thread::endpoint().id());
//   all.await_size(8);
//   strata::group together(strata::this_thread::endpoint(), all.members());
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "strata/message.hpp"
#include "strata/mutex.hpp"
#include "strata/resource.hpp"

namespace strata {

/// A set of endpoints that changes while the program runs: `named<domain> d("workers")`. Members
/// leave, or their node does: endpoints of a node that has left the job are members no more, and
/// their ranks are free. One that merely ends stays a member until it leaves. All functions may be
/// called by any thread; they suspend only while others are just at it. None takes longer the more
/// members there are, and who waits for n members is woken when there are.
class domain {
 public:
  /// Its rank: the lowest that is free. Joining twice changes nothing. Throws misuse_error for no
  /// endpoint, and for one of a node that has left.
  std::uint32_t join(endpoint_id who);
  /// True if it was a member.
  bool leave(endpoint_id who);
  /// Its members now.
  [[nodiscard]] std::uint32_t size();
  /// Suspends until it has at least n members. Throws node_lost_error when a node is lost,
  /// std::bad_alloc.
  void await_size(std::uint32_t n);

  /// A part of the members, by rank; none where a rank is free.
  struct page {
    static constexpr std::uint32_t length = 128;
    std::uint32_t ranks = 0;  // of the whole domain
    std::array<endpoint_id, length> members{};
  };
  /// From this rank on; empty beyond the last one.
  [[nodiscard]] page members_from(std::uint32_t rank);

 private:
  // With the mutex, at the beginning of every function.
  void drop_those_who_have_left();
  void drop(std::uint32_t rank) noexcept;
  void forget_last_free_ranks() noexcept;
  void tell_those_who_wait() noexcept;
  [[nodiscard]] std::uint32_t members() const noexcept {
    return static_cast<std::uint32_t>(ranks_.size());
  }

  mutex mutex_;
  std::vector<endpoint_id> by_rank_;  // none: free
  std::unordered_map<endpoint_id, std::uint32_t> ranks_;
  std::map<node_id_t, std::uint32_t> on_node_;  // how many members
  // No rank below is free; where none is at all, the one behind the last.
  std::uint32_t first_free_ = 0;
  // Of those who wait, by how many members they wait for: whether there were so many. Whoever sets
  // it takes it out.
  std::multimap<std::uint32_t, std::atomic<bool>*> awaited_;
};

/// A domain as other nodes use it. Every function is a call to the domain's node, and throws as
/// that does; members() is one for every 128 ranks.
class domain_handle {
 public:
  /// Of a domain that is known already.
  explicit domain_handle(resource<domain> d) noexcept : d_(d) {}
  /// Suspends until there is one with this name.
  static domain_handle await(std::string_view name) {
    return domain_handle(resource<domain>::await(name));
  }
  /// As those of domain.
  std::uint32_t join(endpoint_id who) { return d_.call<&domain::join>(who); }
  bool leave(endpoint_id who) { return d_.call<&domain::leave>(who); }
  [[nodiscard]] std::uint32_t size() { return d_.call<&domain::size>(); }
  void await_size(std::uint32_t n) { d_.call<&domain::await_size>(n); }
  /// By rank; none where a rank is free.
  [[nodiscard]] std::vector<endpoint_id> members();

 private:
  resource<domain> d_;
};

}  // namespace strata
