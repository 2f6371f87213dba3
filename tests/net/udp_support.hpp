// SPDX-License-Identifier: Apache-2.0
// Nodes that talk over UDP, all in this process; and a bad network between them.
#pragma once
#include <poll.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/prng.hpp"
#include "net/udp/udp_transport.hpp"
#include "os/clock.hpp"

namespace strata::net::test {

inline udp::settings udp_settings(node_id self, node_id nodes) {
  udp::settings s;
  s.self = self;
  s.nodes = nodes;
  s.key.fill(7);
  s.job = 42;
  return s;
}

// Stands between two nodes: loses, doubles, and delays behind the next one.
class bad_network {
 public:
  struct odds {
    double loss = 0, duplication = 0, delay = 0;
  };
  bad_network(const odds& o, std::uint64_t seed) : odds_(o), random_(seed) {}
  ~bad_network() {
    stop_.store(true);
    if (thread_.joinable()) thread_.join();
  }

  // Where to send instead.
  launch::address before(const launch::address& to) {
    ways_.push_back({std::make_unique<udp::datagram_socket>("127.0.0.1"), udp::target_of(to), {}});
    launch::address instead = ways_.back().socket->address();
    instead.worker = to.worker;
    return instead;
  }
  void begin() {
    thread_ = std::thread([this] {
      while (!stop_.load()) carry();
    });
  }

 private:
  struct way {
    std::unique_ptr<udp::datagram_socket> socket;
    udp::target to;
    std::vector<std::byte> late;
  };
  void carry() {
    std::vector<pollfd> polled;
    for (const way& w : ways_) polled.push_back({w.socket->get(), POLLIN, 0});
    ::poll(polled.data(), polled.size(), 1);
    for (way& w : ways_) {
      const std::size_t count = arrivals_.receive(*w.socket);
      for (std::size_t i = 0; i < count; ++i) pass(w, arrivals_.at(i));
      if (count == 0 && !w.late.empty()) send(w, std::exchange(w.late, {}));
    }
  }
  void pass(way& w, std::span<const std::byte> datagram) {
    if (random_.unit() < odds_.loss) return;
    if (w.late.empty() && random_.unit() < odds_.delay) {
      w.late.assign(datagram.begin(), datagram.end());
      return;
    }
    send(w, datagram);
    if (random_.unit() < odds_.duplication) send(w, datagram);
    if (!w.late.empty()) send(w, std::exchange(w.late, {}));
  }
  static void send(const way& w, std::span<const std::byte> datagram) {
    const std::size_t size = datagram.size();
    (void)w.socket->send(w.to, datagram, std::span(&size, 1));
  }

  const odds odds_;
  prng random_;
  udp::arrivals arrivals_;
  std::vector<way> ways_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

using change_settings = std::function<void(udp::settings&)>;

inline std::vector<std::unique_ptr<udp::udp_transport>> udp_nodes(
    node_id nodes, const change_settings& change = {}, bad_network* between = nullptr) {
  std::vector<std::unique_ptr<udp::udp_transport>> all;
  std::vector<launch::address> directory;
  for (node_id n = 0; n < nodes; ++n) {
    udp::settings s = udp_settings(n, nodes);
    if (change) change(s);
    all.push_back(std::make_unique<udp::udp_transport>(s));
    const std::vector<launch::address> own = all.back()->addresses();
    const launch::address& where = own[n % own.size()];
    directory.push_back(between != nullptr ? between->before(where) : where);
  }
  if (between != nullptr) between->begin();
  const std::int64_t deadline_ns = os::now_ns() + 60'000'000'000;
  std::atomic<std::size_t> joined{0};
  std::vector<std::thread> threads;
  for (const auto& t : all) {
    threads.emplace_back([&, deadline_ns] {
      t->connect(directory, deadline_ns);
      // What it has answered may have been lost.
      for (joined.fetch_add(1); joined.load() != all.size(); t->tend())
        t->wait_for_messages(1'000'000);
    });
  }
  for (std::thread& t : threads) t.join();
  return all;
}

}  // namespace strata::net::test
