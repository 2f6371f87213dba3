// SPDX-License-Identifier: Apache-2.0
// A simulated job on many networks in which all talk to all, and each looks whether it hears
// everything once and in order.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "sim/simulated_job.hpp"
#include "support.hpp"

namespace strata::test {

using cluster::kind;
using net::node_id;

inline constexpr auto numbered = static_cast<kind>(1000);

// Networks that two nodes share each; and on which host each node is, if not on one of its own.
class cables {
 public:
  void lay(node_id a, node_id b, std::int64_t latency_ns) { all_[std::minmax(a, b)] = latency_ns; }
  [[nodiscard]] std::optional<cluster::link> operator()(node_id a, node_id b) const {
    const auto found = all_.find(std::minmax(a, b));
    return found == all_.end() ? std::nullopt : std::optional<cluster::link>(found->second);
  }
  void put(node_id n, std::uint16_t host) { hosts_[n] = host; }
  [[nodiscard]] std::vector<std::uint16_t> hosts(node_id nodes) const {
    std::vector<std::uint16_t> all(nodes);
    std::iota(all.begin(), all.end(), std::uint16_t{0});
    for (const auto& [n, host] : hosts_) all.at(n) = host;
    return all;
  }
  void lay_in(sim::world& w) const {
    for (const auto& [ends, latency_ns] : all_) w.lay(ends.first, ends.second, {latency_ns, 1.25});
  }

 private:
  std::map<std::pair<node_id, node_id>, std::int64_t> all_;
  std::map<node_id, std::uint16_t> hosts_;
};

class talking_job {
 public:
  talking_job(const cables& networks, node_id founders, node_id capacity, std::uint64_t seed,
              const sim::network_model& network, std::int64_t measures_again_ns = 0,
              std::int64_t lost_after_ns = 0, bool spares = false, std::int64_t mends_after_ns = 0,
              bool tells_of_ends = true)
      : world(network, seed), networks_(networks), random_(seed) {
    networks.lay_in(world);
    sim::job_model m;
    m.nodes = capacity;
    m.founders = founders;
    m.links = networks_;
    m.hosts = networks_.hosts(capacity);
    m.cost = two_microseconds;
    m.measures = measures_again_ns != 0;
    m.measures_again_ns = measures_again_ns;
    m.lost_after_ns = lost_after_ns;
    m.spares = spares;
    m.mends_after_ns = mends_after_ns;
    m.mends_every_ns = 8 * mends_after_ns;
    m.tells_of_ends = tells_of_ends;
    // What is repeated when a cable is back comes before anybody gives the connection up for that.
    if (mends_after_ns != 0) m.channel.most_timeout_ns = mends_after_ns;
    job.emplace(world, m);
    EXPECT_TRUE(world.run([&] { return job->has_begun(); })) << "it never begins";
    until_ns += world.now_ns();
    job->when_made = [this](node_id n) { listen(n); };
    for (node_id n = 0; n < founders; ++n) {
      listen(n);
      speak(n);
    }
  }

  // All send each other numbers until the time is over; who comes later when it is told to speak().
  void listen(node_id n) {
    job->node(n).hears = [this, n](node_id from, kind k, std::span<const std::byte> payload) {
      if (k != numbered) return false;
      std::uint32_t number = 0;
      EXPECT_EQ(payload.size(), sizeof number);
      std::memcpy(&number, payload.data(), sizeof number);
      std::uint32_t& next = received_[flow(from, n)];
      EXPECT_EQ(number, next) << "from " << from << " to " << n;
      next = number + 1;
      return true;
    };
  }
  void speak(node_id n) {
    world.at(world.now_ns() + static_cast<std::int64_t>(random_.below(pause_ns)), [this, n] {
      if (world.now_ns() >= until_ns || job->node(n).has_left()) return;
      const cluster::membership& members = job->node(n).members();
      const std::vector<node_id> all = members.all();
      const node_id to = all[random_.below(all.size())];
      if (to != n && members.works(to) && members.of(n) == cluster::standing::present) {
        const std::uint32_t number = sent_[flow(n, to)]++;
        job->node(n).post(to, numbered, std::as_bytes(std::span(&number, 1)), {});
      }
      speak(n);
    });
  }

  // Until all is said, and nothing changes any more.
  void end(const std::function<bool()>& changes_are_over = [] { return true; }) {
    EXPECT_TRUE(world.run(
        [&] {
          return world.now_ns() >= until_ns && changes_are_over() && received_ == sent_ &&
                 !job->node(0).networks->rerouting().is_changing();
        },
        60'000'000'000))
        << "something is lost, or a change does not end";
    try {
      if (const std::exception_ptr error = job->failure()) std::rethrow_exception(error);
    } catch (const std::exception& e) {
      ADD_FAILURE() << e.what();
    }
    EXPECT_EQ(received_, sent_);
    // All go by the same ways.
    for (const node_id n : job->node(0).members().all())
      EXPECT_EQ(job->node(n).networks->rerouting().plan().number,
                job->node(0).networks->rerouting().plan().number);
  }

  // Whether all of `members` reach each other when only `forwarders` forward; over all networks, or
  // those that are `left`.
  using which = std::function<bool(node_id, node_id)>;
  [[nodiscard]] bool is_joined(
      const std::set<node_id>& members, const std::set<node_id>& forwarders,
      const which& left = [](node_id, node_id) { return true; }) const {
    std::set<node_id> reached{0};
    std::vector<node_id> next{0};
    while (!next.empty()) {
      const node_id by = next.back();
      next.pop_back();
      if (!forwarders.contains(by)) continue;
      for (const node_id n : members) {
        if (networks_(by, n) && left(by, n) && reached.insert(n).second) next.push_back(n);
      }
    }
    return reached.size() == members.size();
  }

  sim::world world;
  std::optional<sim::job> job;
  std::int64_t until_ns = 20'000'000;
  std::uint64_t pause_ns = 100'000;  // between two messages of one node, at most

 private:
  const cables networks_;
  prng random_;
  using flow = std::pair<node_id, node_id>;
  std::map<flow, std::uint32_t> sent_, received_;
};

inline constexpr sim::network_model misbehaving{
    .jitter_ns = 20'000, .loss = 0.03, .duplication = 0.03};

inline cables triangle(std::int64_t far_ns = 5'000) {
  cables c;
  c.lay(0, 1, 5'000);
  c.lay(1, 2, 5'000);
  c.lay(0, 2, far_ns);
  return c;
}

}  // namespace strata::test
