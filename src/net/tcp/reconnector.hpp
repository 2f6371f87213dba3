// SPDX-License-Identifier: Apache-2.0
// Connects to nodes of the running job once more, and lets those in that do: as when the job began
// (mesh.hpp), so node i connects to j < i, both prove that they belong to the job, and strangers
// are dropped. One thread calls run(), and sleeps there without end while nobody comes.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "launch/address.hpp"
#include "net/tcp/conversation.hpp"
#include "net/tcp/handshake.hpp"
#include "net/tcp/mesh_ground.hpp"
#include "net/tcp/socket.hpp"
#include "net/tcp/unauthenticated.hpp"
#include "os/descriptor.hpp"

namespace strata::net::tcp {

class reconnector {
 public:
  using number = std::uint16_t;  // the caller's, for a network that several nodes share
  class hands {
   public:
    // By the thread that runs. A connection to n over that network, made by whichever of the two;
    // or the attempt of this node is over.
    virtual void on_met(node_id n, number network, os::descriptor socket) = 0;
    virtual void on_not_met(node_id n, number network) = 0;

   protected:
    ~hands() = default;
  };
  struct settings {
    std::size_t socket_buffer_bytes = 0;
    std::int64_t attempt_limit_ns = 3'000'000'000;
    unauthenticated::limits unauthenticated_limits{};
    mesh_ground* ground = solid_ground();
  };
  // doors: where others look for this node, with the network of each.
  reconnector(identity me, std::vector<listener> doors, std::vector<number> networks,
              const settings& s);

  // Tries to reach n there; what becomes of it the hands of who runs are told, once. One attempt
  // for each node and network at a time. Any thread. False: nobody runs any more, and nothing has
  // happened.
  [[nodiscard]] bool connect(node_id n, number network, launch::address where);
  // Until stop(). What it throws when something that it needs is used up ends it as well, and all
  // attempts with it.
  void run(hands& h);
  // Any thread.
  void stop() noexcept;

 private:
  using goal = std::pair<node_id, number>;
  void look_until_stopped();
  void give_up();
  // Whether there was one.
  bool take_wish();
  void begin(const goal& g, const launch::address& where);
  void wait();
  void ring() noexcept;
  void end(const goal& g);

  const identity me_;
  const std::vector<listener> doors_;
  const std::vector<number> networks_;
  const settings settings_;
  const os::descriptor bell_;  // an eventfd

  std::mutex mutex_;  // of the next two
  std::map<goal, launch::address> wishes_;
  bool stopped_ = false;

  // Of the thread that runs.
  hands* hands_ = nullptr;
  std::map<goal, conversation> attempts_;
  unauthenticated unauthenticated_;
  std::int64_t now_ns_ = 0;
  std::vector<pollfd> polled_;
};

}  // namespace strata::net::tcp
