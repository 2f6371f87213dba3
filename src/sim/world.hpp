// SPDX-License-Identifier: Apache-2.0
// Many nodes in one thread: a simulated clock, a list of what is to happen when, and a network that
// delays, loses, doubles, reorders and is cut. Everything follows from a seed.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <queue>
#include <set>
#include <utility>
#include <vector>

#include "base/prng.hpp"
#include "cluster/words/surroundings.hpp"

namespace strata::sim {

using node_id = net::node_id;

struct network_model {
  std::int64_t latency_ns = 5'000;
  std::int64_t jitter_ns = 0;  // added, evenly distributed; makes packets overtake each other
  double bytes_per_ns = 1.25;  // of each node's link
  double loss = 0;             // of a packet
  double duplication = 0;      // of a packet
};

// A network that only two nodes share.
struct own_network {
  std::int64_t latency_ns = 5'000;
  double bytes_per_ns = 1.25;
};

class world final : public cluster::clock {
 public:
  world(const network_model& network, std::uint64_t seed) : random(seed), network_(network) {}

  [[nodiscard]] std::int64_t now_ns() const override { return now_; }

  // Calls `what` at that time, and after everything that was planned earlier for the same time.
  void at(std::int64_t time_ns, std::function<void()> what);

  // A packet of so many bytes from one node to another: calls `arrive` when it is there, never, or
  // twice. `departs_ns` is not before now.
  void carry(node_id from, node_id to, std::size_t bytes, std::int64_t departs_ns,
             std::function<void()> arrive);

  // Nothing passes between the two until join().
  void cut(node_id a, node_id b) { cuts_.insert(std::minmax(a, b)); }
  void join(node_id a, node_id b) { cuts_.erase(std::minmax(a, b)); }

  // Between these two, both ways; loss and the rest are those of all.
  void lay(node_id a, node_id b, own_network what) { own_[std::minmax(a, b)] = what; }

  // Lets things happen until `until` says so, nothing is left, or the time is over. True: `until`.
  bool run(const std::function<bool()>& until, std::int64_t limit_ns = INT64_MAX);

  [[nodiscard]] std::uint64_t packets() const noexcept { return packets_; }
  [[nodiscard]] std::uint64_t happenings() const noexcept { return happenings_; }

  prng random;

 private:
  // Small, as the queue moves it about; what is to happen stays where it is.
  struct planned {
    std::int64_t time;
    std::uint64_t order;
    std::size_t what;  // in whats_
    bool operator>(const planned& other) const {
      return std::pair(time, order) > std::pair(other.time, other.order);
    }
  };

  const network_model network_;
  std::int64_t now_ = 0;
  std::uint64_t order_ = 0;
  std::uint64_t packets_ = 0;
  std::uint64_t happenings_ = 0;
  std::priority_queue<planned, std::vector<planned>, std::greater<>> plan_;
  std::vector<std::function<void()>> whats_;
  std::vector<std::size_t> free_whats_;
  std::vector<std::int64_t> link_free_at_;  // of each node
  std::map<std::pair<node_id, node_id>, own_network> own_;
  std::map<std::pair<node_id, node_id>, std::int64_t> own_free_at_;  // one way
  std::set<std::pair<node_id, node_id>> cuts_;
};

}  // namespace strata::sim
