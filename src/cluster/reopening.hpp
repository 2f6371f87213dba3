// SPDX-License-Identifier: Apache-2.0
// Over what connections that have ended are made again: TCP, by the doors of spare connections,
// which stay open while the job runs; one transport for the first connections and one for the spare
// ones. Its thread sleeps while nobody tries.
#pragma once
#include <optional>
#include <thread>
#include <vector>

#include "launch/job.hpp"
#include "net/tcp/meeting.hpp"
#include "net/tcp/tcp_transport.hpp"

namespace strata::cluster {

using net::node_id;

class reopening {
 public:
  using network = net::tcp::meeting::number;
  using hands = net::tcp::meeting::hands;
  // A transport, and over which network it connects this node with each of the others, by number.
  struct line {
    net::tcp::tcp_transport* over = nullptr;
    std::vector<std::optional<network>> networks{};
  };
  struct doors {
    std::vector<net::tcp::listener> where{};
    std::vector<network> networks{};  // of each
  };
  // The transports live longer.
  reopening(net::tcp::identity me, doors d, std::size_t socket_buffer_bytes,
            std::vector<line> lines);
  ~reopening() { stop(); }
  reopening(const reopening&) = delete;
  reopening& operator=(const reopening&) = delete;

  // Over which network that transport has connected this node with n; none: it is none of these.
  [[nodiscard]] std::optional<network> network_of(node_id n,
                                                  const net::transport* over) const noexcept;
  // The transport that connects this node with n over that network; null: none of these.
  [[nodiscard]] net::tcp::tcp_transport* line_to(node_id n, network over) const noexcept;

  // The hands are told by a thread of this, without the inbox.
  void begin(hands& h);
  // Any thread. What becomes of it the hands are told.
  void connect(node_id n, network over, launch::address where);
  // Without the inbox.
  void stop() noexcept;

 private:
  const std::vector<line> lines_;
  net::tcp::meeting meeting_;
  std::thread thread_;
};

}  // namespace strata::cluster
