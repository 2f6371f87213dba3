// SPDX-License-Identifier: Apache-2.0
// Over what connections that have ended are made again: TCP, by the doors of spare connections,
// which stay open while the job runs; one transport for the first connections and one for the spare
// ones. Its thread sleeps while nobody tries.
#pragma once
#include <cstdint>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "launch/job.hpp"
#include "net/tcp/meeting.hpp"
#include "net/tcp/tcp_transport.hpp"
#include "os/descriptor.hpp"

namespace strata::cluster {

using net::node_id;

class reopening final : net::tcp::meeting::hands {
 public:
  using network = net::tcp::meeting::number;
  class hands {
   public:
    // By the thread of this, without the inbox. The two are connected over that network; or this
    // node has tried in vain.
    virtual void on_reopened(node_id n, network over, os::descriptor socket) = 0;
    virtual void on_not_reopened(node_id n, network over) = 0;

   protected:
    ~hands() = default;
  };
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

  // Over which network that transport has connected this node with n; none: it is none of these.
  [[nodiscard]] std::optional<network> network_of(node_id n,
                                                  const net::transport* over) const noexcept;
  // The transport that connects this node with n over that network; null: none of these.
  [[nodiscard]] net::tcp::tcp_transport* line_to(node_id n, network over) const noexcept;

  void begin(hands& h);
  // Any thread. What becomes of it the hands are told.
  void connect(node_id n, network over, launch::address where);
  // Without the inbox.
  void stop() noexcept;

 private:
  void on_met(node_id n, network over, os::descriptor socket) override {
    hands_->on_reopened(n, over, std::move(socket));
  }
  void on_not_met(node_id n, network over) override { hands_->on_not_reopened(n, over); }

  const std::vector<line> lines_;
  hands* hands_ = nullptr;
  net::tcp::meeting meeting_;
  std::thread thread_;
};

}  // namespace strata::cluster
