// SPDX-License-Identifier: Apache-2.0
// What a node listens with: on the address that it was given, or on each of the networks that the
// user has named and it is on; and there once more for spare connections.
//
// Networks of one kind are one part, with one transport, but for those of UCX, which would take two
// for one: each of them is a part by itself.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/transport_choice.hpp"
#include "launch/job.hpp"
#include "launch/own_address.hpp"
#include "net/addressed.hpp"
#include "net/tcp/socket.hpp"
#include "strata/options.hpp"

namespace strata::cluster {

struct part {
  network_kind kind = network_kind::tcp;
  std::vector<std::uint16_t> networks{};  // their places in the user's list; empty: none was named
  struct ear {
    std::vector<net::tcp::listener> listeners{};            // over TCP
    std::unique_ptr<net::addressed_transport> addressed{};  // else
  };
  ear first{}, spare{};

  // A network that was named and that two nodes use; none: they use what was not named.
  [[nodiscard]] bool serves(std::optional<std::uint16_t> network) const noexcept;
};

struct own_sockets {
  std::vector<part> parts{};
  launch::address where{};  // as others are told
};

// Who begins the job on several networks has spare connections.
[[nodiscard]] bool has_spares(const launch::job_description& job,
                              const std::vector<launch::named_network>& networks);

// How long over UDP a node may answer nothing. The transport itself never takes for lost who may be
// silent for longer, as in a debugger.
[[nodiscard]] std::int64_t udp_silence_ns_max(const options& settings);

// Throws strata::error. No networks: on the node's own address, by what the job has between nodes.
own_sockets open_sockets(const launch::job_description& job,
                         const std::vector<launch::named_network>& networks,
                         const options& settings);

}  // namespace strata::cluster
