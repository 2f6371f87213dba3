// SPDX-License-Identifier: Apache-2.0
// What the networks between hosts cost, as measured when the job began or since. (Requirement P12.)
//
// Every node makes this from the same words, so all have the same costs, and ways that are computed
// from them do not go in circles. What is measured is rounded, and a direct network keeps its
// messages unless forwarding is better by more than noise explains:
//
// Invariant: of two hosts that share a network, either it costs more than `margin` times as much as
// the cheapest way by others, or exactly as much as that, or less. A cost that is lowered to that
// of a way changes no other way's.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "cluster/ways/link.hpp"
#include "launch/found_links.hpp"

namespace strata::cluster {

// The nearest of the values that travel: powers of the square root of 2. At least 1, and no more
// than launch::measured_link has steps for.
std::uint8_t to_step(std::int64_t value) noexcept;
std::int64_t from_step(std::uint8_t step) noexcept;
// As measured, of a message of typical_bytes.
std::int64_t cost_of(const launch::measured_link& m) noexcept;

class link_costs {
 public:
  // Equal networks whose measurements are off by no more than this, up or down, are not gone around
  // (two hops that seem that much cheaper, instead of one that seems that much dearer, are still no
  // more than twice as good).
  static constexpr std::int64_t margin = 2;
  // The networks of a job on more hosts are not measured: it would take long, and all pairs of them
  // are looked at.
  static constexpr std::size_t hosts_max = 256;

  link_costs() = default;
  // told: by node, what it has measured; host_of: by node. Throws strata::error for what no node of
  // this job can have told.
  link_costs(const std::vector<std::vector<launch::measured_link>>& told,
             const std::vector<std::uint16_t>& host_of);

  // Of this network (by its place in the user's list) between two hosts; none: not measured.
  [[nodiscard]] std::optional<link> between(std::uint16_t host, std::uint16_t other,
                                            std::uint16_t network) const;
  // The network that counts between these two, of those that were measured: the first that was
  // told, unless another one is better by more than noise explains. None: nothing was measured.
  [[nodiscard]] std::optional<std::uint16_t> network(std::uint16_t host, std::uint16_t other) const;
  // The dearest measured cost on this network; 0: there is none. What was not measured is not taken
  // to be better than what was.
  [[nodiscard]] std::int64_t dearest_ns(std::uint16_t network) const;

 private:
  struct entry {
    link what{0};  // cost 0: there is none
    std::uint16_t network = 0;
  };
  [[nodiscard]] std::optional<std::size_t> place_of(std::uint16_t host) const;
  entry& at(std::size_t a, std::size_t b) { return entries_[a * hosts_ + b]; }
  void keep_direct_what_may_be_equal();

  std::vector<std::int16_t> places_;   // by host; -1: it has measured nothing
  std::size_t hosts_ = 0;              // that have a place
  std::vector<entry> entries_;         // by two places, both ways
  std::vector<std::int64_t> dearest_;  // by network
};

}  // namespace strata::cluster
