// SPDX-License-Identifier: Apache-2.0
// Connections that a job does without, because something keeps their two ends from connecting:
// where nodes share several networks, each tells the others which of its own it could not make, so
// that all find the same ways. Once for the first connections of each pair, and once for spare
// ones.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cluster/opening/connected.hpp"
#include "cluster/opening/own_sockets.hpp"
#include "cluster/ways/reach.hpp"
#include "cluster/ways/routes.hpp"
#include "launch/job.hpp"

namespace strata::cluster {

class closed_links {
 public:
  // `parts`: what this node listens with. Both live longer.
  closed_links(launch::control_line& line, const std::vector<part>& parts);

  // Over which network this node is to connect to each node, by number.
  using by_node = std::vector<std::optional<std::uint16_t>>;
  void expect(const reach& who);
  [[nodiscard]] const by_node& networks(which w) const noexcept {
    return w == which::first ? first_ : spare_;
  }

  // Those to whom this node should have connected, and has not: `all` is over each part.
  void find(const std::vector<connected>& all, which w);
  // Tells the others of them, hears of theirs, and drops whom others have found closed; blocks
  // until all have told. What has connected is left alone from then on. Throws strata::error when a
  // first connection has ended meanwhile and nobody had found it closed.
  void agree(std::vector<connected>& all, which w);
  // What all have told of, last.
  [[nodiscard]] const std::vector<launch::closed_link>& told() const noexcept { return told_; }

  // Throws strata::error when by these ways somebody is not reached; on stderr those of this node,
  // by `networks`, which the user has named.
  void complain(const routes& ways, const std::vector<launch::named_network>& networks) const;

 private:
  launch::control_line& line_;
  const launch::job_description& job_;
  const std::vector<part>& parts_;
  by_node first_{}, spare_{};
  std::vector<launch::closed_link> found_{};    // by this node, since it has told of any
  std::vector<launch::closed_link> told_{};     // by all
  std::map<std::uint16_t, std::string> why_{};  // by network: what was heard first
};

}  // namespace strata::cluster
