// SPDX-License-Identifier: Apache-2.0
// What open_transports() does, step by step.
#pragma once
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/transport_choice.hpp"
#include "cluster/opening/closed_links.hpp"
#include "cluster/opening/connected.hpp"
#include "cluster/opening/entrance.hpp"
#include "cluster/opening/own_sockets.hpp"
#include "cluster/opening/reopening.hpp"
#include "cluster/opening/transports.hpp"
#include "cluster/ways/joined_hosts.hpp"
#include "launch/job.hpp"
#include "launch/own_address.hpp"
#include "net/shm/shm_transport.hpp"
#include "strata/options.hpp"

namespace strata::cluster {

class opening {
 public:
  opening(launch::control_line& line, const options& settings, std::string build);
  connections all();

 private:
  [[nodiscard]] bool has_left(unsigned n) const {
    return std::find(job_.left.begin(), job_.left.end(), n) != job_.left.end();
  }
  [[nodiscard]] bool is_here(unsigned n) const {
    return job_.host_of.at(n) == job_.host_of.at(job_.node) && !has_left(n);
  }
  [[nodiscard]] bool by_memory() const {
    return uses_memory(job_.transport) && job_.shared_memory >= 0 &&
           (on_this_host_.size() > 1 || job_.elastic);
  }
  // Also where memory could not be had, or others may come.
  [[nodiscard]] bool by_network() const {
    return several_ && (!by_memory() || on_this_host_.size() < job_.nodes ||
                        (job_.elastic && network_of(job_.transport) != network_kind::none));
  }

  using of_parts = std::vector<std::unique_ptr<net::transport>>;
  // Each adds to opened_ what there is to know afterwards.
  net::shm::shm_transport* open_memory();
  [[nodiscard]] own_sockets listen() const;
  void open_parts(net::shm::shm_transport* shm);
  struct joined {
    of_parts first{}, spares{};
    entrance::transports by{};
  };
  // Connects with all others.
  [[nodiscard]] joined join(const connecting& how);
  void learn(const std::vector<launch::address>& directory);
  void find_networks();
  void find_ways();
  [[nodiscard]] of_parts begin(std::vector<connected> all, entrance::transports& by);
  [[nodiscard]] bool reaches_somebody(const net::transport& t) const;
  // By part: where all are whom this node is to connect to over that.
  [[nodiscard]] std::vector<std::vector<launch::address>> directories(which w) const;
  [[nodiscard]] of_parts measure(const of_parts& first, const connecting& how);
  // Once all transports are there.
  void keep_doors_open(const connecting& how);

  launch::control_line& line_;
  const launch::job_description& job_;
  const options& settings_;
  std::vector<launch::named_network> networks_;  // that the user has named, or that were found
  const std::string build_;
  std::vector<net::node_id> on_this_host_;
  const bool several_;
  connections opened_;
  joined_hosts joins_{};       // until opened_.who has it
  std::vector<part> parts_{};  // of what this node listens with

  closed_links closed_{line_, parts_};  // where two nodes share several networks
  std::vector<reopening::line> lines_;  // of all that begin(), without networks
};

}  // namespace strata::cluster
