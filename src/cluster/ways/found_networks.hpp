// SPDX-License-Identifier: Apache-2.0
// The networks that the hosts of a job share, found by the nodes themselves (`--strata-networks
// auto`): what they tell each other of it, and what all make of that, which is the same everywhere.
// Without sockets: finding.hpp has those. (Requirement P12.)
//
//   1. The first node of each host tells the networks of its interfaces, and where it listens on
//      each; and the host's own address, at which a job without any networks would look for it.
//   2. What two of them have in common is tried: they connect, each proves the job's key, and each
//      tells who was there.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/ways/joined_hosts.hpp"
#include "launch/job.hpp"
#include "net/wire.hpp"

namespace strata::cluster {

using net::node_id;

// Of one host.
struct own_finds {
  struct network {
    std::string range;  // "10.1.0.0/16"
    std::string interface;
    launch::address where;  // a numeric host; port, and worker over UDP
  };
  launch::address home{};  // neither port nor worker: nobody listens there
  std::vector<network> networks{};
};
// What does not fit into launch::found_bytes_max is left out, the last first.
std::string pack(const own_finds& mine);
own_finds unpack_own_finds(std::string_view bytes);  // throws strata::error

// That another one has answered over the network with this number.
struct answer {
  std::uint16_t network = 0;
  node_id node = 0;

  friend bool operator==(const answer&, const answer&) = default;
};
std::string pack(const std::vector<answer>& mine);
std::vector<answer> unpack_answers(std::string_view bytes);  // throws strata::error

class found_networks {
 public:
  // More are not tried: the first ones are.
  static constexpr std::size_t tried_max = 16;

  // told: by node, empty of those that are not the first of their host. Throws strata::error for
  // what no node can have told.
  found_networks(const std::vector<std::string>& told, const std::vector<std::uint16_t>& host_of);

  // What is tried: networks on which two hosts are, whose addresses there differ; and last, with an
  // empty range, the hosts' own addresses, between those for whom these are on no such network.
  struct candidate {
    std::string range;
    // Whom `self` tries, by node, and where; neither port nor worker: not this one.
    std::vector<launch::address> others;
  };
  // Where `self` is the first of its host; in all cases as many as there are numbers.
  [[nodiscard]] std::vector<candidate> tried_by(node_id self, node_id capacity) const;

  // Whoever was there, of what all have told; an answer counts that both have had.
  struct outcome {
    // By number; an empty range: the hosts' own addresses. None at all: a job without networks is
    // as good, as all reach each other at these, and over nothing else.
    std::vector<std::string> ranges{};
    joined_hosts joins{};
  };
  // more_may_come: hosts that are on none of them, perhaps. Throws strata::error as above.
  [[nodiscard]] outcome judge(const std::vector<std::string>& answers, bool more_may_come) const;

 private:
  struct host {
    node_id first;
    std::uint16_t number;
    own_finds there;
  };
  struct network {
    std::string range;
    std::vector<const own_finds::network*> at;  // by host; null: not on it
  };
  [[nodiscard]] std::size_t homes() const noexcept { return networks_.size(); }  // its number
  // Whether both hosts' own addresses are those that they have on it.
  [[nodiscard]] bool has_homes(const network& n, std::size_t a, std::size_t b) const;
  [[nodiscard]] bool is_tried(std::size_t number, std::size_t a, std::size_t b) const;
  [[nodiscard]] const launch::address& where(std::size_t number, std::size_t h) const;
  // The steps of judge().
  class agreement;
  [[nodiscard]] agreement agreed(const std::vector<std::string>& answers) const;
  [[nodiscard]] bool adds_to(std::size_t before, std::size_t number, const agreement& had) const;
  [[nodiscard]] std::vector<std::size_t> useful(const agreement& had) const;
  // A job without networks is as good.
  [[nodiscard]] bool is_plain(const std::vector<std::size_t>& kept, const agreement& had) const;

  std::vector<host> hosts_;  // not changed any more: networks_ points into it
  std::vector<network> networks_;
};

}  // namespace strata::cluster
