// SPDX-License-Identifier: Apache-2.0
// From what all nodes of a job compute the same ways, by number: each change makes the next one.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "cluster/ways/routes.hpp"
#include "cluster/words/codec.hpp"
#include "launch/found_links.hpp"
#include "net/wire.hpp"

namespace strata::cluster {

struct way_plan {
  struct measurement {
    node_id by = 0;
    launch::measured_link what{};

    friend bool operator==(const measurement&, const measurement&) = default;
  };
  using pair = std::pair<node_id, node_id>;  // the lower number first
  // How often the connection between two has ended, or was made again after that. Odd: there is
  // none. Whoever hears less than it knows hears of the past.
  using words = std::map<pair, std::uint32_t>;
  // As many fit into a message beside all nodes that there can be.
  static constexpr std::size_t measured_max = 3072, cuts_max = 1024;

  std::uint32_t number = 0;
  std::vector<node_id> members{};     // who takes part in the change, in the order of their numbers
  std::vector<node_id> forwarders{};  // the same; node 0 is always one
  words about_connections{};          // of those that have ever ended
  std::vector<measurement> measured{};  // instead of what was measured when the job began

  [[nodiscard]] bool forwards(node_id n) const;
  [[nodiscard]] bool is_cut(node_id a, node_id b) const;
  // Those of node `self`, with numbers up to `nodes`.
  [[nodiscard]] routes ways(node_id self, node_id nodes, const routes::link_cost& cost) const;
  friend bool operator==(const way_plan&, const way_plan&) = default;
};

// That of the first so many nodes, all of which forward.
way_plan first_plan(node_id founders);

// What counts of all that was measured when the job began (by node) and since: of two hosts what is
// newer.
std::vector<std::vector<launch::measured_link>> with_newer(
    std::vector<std::vector<launch::measured_link>> told,
    const std::vector<way_plan::measurement>& newer, const std::vector<std::uint16_t>& host_of);

// What one node has found, or several; the rest of a message. Throws malformed.
void add_measured(writer& out, const std::vector<way_plan::measurement>& all);
std::vector<way_plan::measurement> take_measured(reader& r, node_id nodes);

writer pack(const way_plan& p);
// Throws malformed, also for nodes that there cannot be.
way_plan unpack_plan(reader r, node_id nodes);

}  // namespace strata::cluster
