// SPDX-License-Identifier: Apache-2.0
// Transfers between simulated nodes (net/transfers.hpp): each takes its time, in several writes,
// and tells its two ends when it likes. What one end of it had crashed for goes on nowhere; the
// other hears of that when it knows of the loss.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "net/transfers.hpp"

namespace strata::sim {

using net::node_id;

class job;

class simulated_transfers final : public net::transfers {
 public:
  simulated_transfers(job& j, node_id self) : job_(j), self_(self) {}

  [[nodiscard]] std::size_t bytes_min(node_id peer) noexcept override;
  [[nodiscard]] bool expect(node_id peer, std::uint64_t number, std::span<std::byte> into) override;
  [[nodiscard]] bool withdraw(node_id peer, std::uint64_t number) noexcept override;
  [[nodiscard]] bool give(node_id peer, std::uint64_t number, std::span<const std::byte> bytes,
                          std::uint64_t own_number) override;

  // This node knows that `peer` is lost.
  void lose(node_id peer);

 private:
  struct moving {
    node_id giver, taker;
    std::uint64_t own_number, number;
    std::span<const std::byte> from;
    std::span<std::byte> into;
    bool giver_knows = false, taker_knows = false;  // that it is over
  };
  using shared = std::shared_ptr<moving>;
  void begin(const shared& m);
  void go_on(const shared& m, std::size_t done);
  void arrive(const shared& m, bool whole);
  void tell_giver(const shared& m, bool whole);
  [[nodiscard]] std::int64_t later(std::uint64_t ns_max);

  job& job_;
  const node_id self_;
  std::vector<bool> lost_;
  std::map<std::pair<node_id, std::uint64_t>, std::span<std::byte>> expected_;
  std::vector<shared> under_way_;  // from here and to here
};

}  // namespace strata::sim
