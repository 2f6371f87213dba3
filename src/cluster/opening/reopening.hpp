// SPDX-License-Identifier: Apache-2.0
// Over what connections that have ended are made again. TCP: by the doors of spare connections,
// which stay open while the job runs, and where a thread waits, which sleeps while nobody tries.
// UDP: by the sockets that are there. There may be transports for first connections and for spare
// ones.
#pragma once
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/fair_mutex.hpp"
#include "launch/address.hpp"
#include "net/renewals.hpp"
#include "net/tcp/reconnector.hpp"
#include "net/tcp/tcp_transport.hpp"

namespace strata::cluster {

using net::node_id;

class reopening final : private net::tcp::reconnector::hands {
 public:
  using network = net::tcp::reconnector::number;
  // All with the inbox.
  class hands {
   public:
    virtual std::unique_lock<fair_mutex<>> take_inbox() = 0;
    // A connection to n over that network, made by whichever of the two; or the attempt of this
    // node is over. There is a line_to(n, over).
    virtual void on_met(node_id n, network over, std::unique_ptr<net::renewal> made) = 0;
    virtual void on_not_met(node_id n, network over) = 0;

   protected:
    ~hands() = default;
  };
  // A transport, and over which network it connects this node with each of the others, by number.
  // One of the two is set: it says how.
  struct line {
    net::transport* over = nullptr;
    net::tcp::tcp_transport* tcp = nullptr;
    net::renewals* renews = nullptr;
    std::vector<std::optional<network>> networks{};
  };
  struct doors {
    std::vector<net::tcp::listener> where{};
    std::vector<network> networks{};  // of each
  };
  // The transports live longer.
  reopening(net::tcp::identity me, doors d, std::size_t socket_buffer_bytes,
            std::vector<line> lines);
  ~reopening();
  reopening(const reopening&) = delete;
  reopening& operator=(const reopening&) = delete;

  // Over which network that transport has connected this node with n; none: it is none of these.
  [[nodiscard]] std::optional<network> network_of(node_id n,
                                                  const net::transport* over) const noexcept;
  // The transport that connects this node with n over that network; null: none of these.
  [[nodiscard]] net::transport* line_to(node_id n, network over) const noexcept;

  // Without the inbox.
  void begin(hands& h);
  // With the inbox. What becomes of it the hands are told. `where` is of use over TCP. False:
  // nothing is tried there any more.
  [[nodiscard]] bool connect(node_id n, network over, launch::address where);
  // Without the inbox.
  void stop() noexcept;

 private:
  // Of one line.
  class of_line;
  [[nodiscard]] const line* find(node_id n, network over) const noexcept;
  // By the thread.
  void on_met(node_id n, network over, os::descriptor socket) override;
  void on_not_met(node_id n, network over) override;

  const std::vector<line> lines_;
  std::vector<std::unique_ptr<of_line>> listening_;
  hands* hands_ = nullptr;
  std::optional<net::tcp::reconnector> reconnector_;  // where there are doors
  std::thread thread_;
};

}  // namespace strata::cluster
