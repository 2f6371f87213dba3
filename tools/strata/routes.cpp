// SPDX-License-Identifier: Apache-2.0
#include "tools/strata/routes.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "base/shortened.hpp"
#include "launch/own_address.hpp"
#include "strata/error.hpp"
#include "strata/message.hpp"
#include "strata/remote_thread.hpp"
#include "strata/route.hpp"
#include "strata/runtime.hpp"
#include "tools/strata/events/shared_names.hpp"
#include "tools/strata/processes/program_path.hpp"

namespace strata::launcher {

namespace {

constexpr const char* one_has_no_routes =
    "a job of one node has no routes; give it two or more with strata info --routes -n N";

constexpr int calls = 201;
constexpr int blocks = 16;
constexpr std::size_t block_bytes = std::size_t{1} << 20;

struct measured {
  node_id_t next;
  unsigned hops;
  std::array<char, 16> transport;
  std::array<char, 48> network;
  double half_round_trip_us;
  double megabytes_per_s;
  // When the job began.
  double latency_us;
  double link_megabytes_per_s;
  double cost_us;
};

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// 0: nobody knows.
std::string known(double value, int digits) {
  if (value == 0) return "-";
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  return text.data();
}

void nothing() {}

void receive_blocks(endpoint_id home) {
  endpoint mine;
  mine.send_value(home, 0, mine.id());
  std::vector<std::byte> block(block_bytes);
  for (int i = 0; i < blocks; ++i) mine.receive(block, home);
  mine.send_value(home, 0, mine.id());
}

// On the node that the way begins at.
measured measure(node_id_t to) {
  const route way = route_to(to);
  measured m{};
  m.next = way.next;
  m.hops = way.hops;
  if (way.is_measured) {
    m.latency_us = static_cast<double>(way.latency_ns) / 1e3;
    m.link_megabytes_per_s = static_cast<double>(way.bytes_per_s) / 1e6;
  }
  m.cost_us = static_cast<double>(way.cost_ns) / 1e3;
  const auto keep = [](const std::string& text, auto& room) {
    std::copy_n(text.begin(), std::min(text.size(), room.size() - 1), room.begin());
  };
  keep(way.transport, m.transport);
  keep(way.network, m.network);
  std::array<double, calls> times{};
  for (double& t : times) {
    const auto start = std::chrono::steady_clock::now();
    call<nothing>(on_node{to});
    t = seconds_since(start);
  }
  std::nth_element(times.begin(), times.begin() + calls / 2, times.end());
  m.half_round_trip_us = times[calls / 2] / 2 * 1e6;

  endpoint mine;
  remote_thread there(
      on_node{to}, [](endpoint_id home) { receive_blocks(home); }, mine.id());
  const auto other = mine.receive_value<endpoint_id>();
  const std::vector<std::byte> block(block_bytes);
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < blocks; ++i) mine.send(other, 0, block);
  (void)mine.receive_value<endpoint_id>(other);
  m.megabytes_per_s = static_cast<double>(blocks * block_bytes) / 1e6 / seconds_since(start);
  there.join();
  return m;
}

}  // namespace

run_request routes_request(int argc, char** argv) {
  // The last -n counts.
  std::vector<std::string> words{"run", "-n", "2"};
  std::string networks;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--routes") continue;
    if (word == "--networks") {
      if (i + 1 == argc) throw user_error("--networks needs a value: a list of networks, or auto");
      networks = argv[++i];
    } else if (word.starts_with("--networks=")) {
      networks = word.substr(word.find('=') + 1);
    } else {
      words.emplace_back(word);
    }
  }
  try {
    (void)networks_in(networks, network_kind::tcp);
  } catch (const user_error& problem) {
    throw user_error(std::string("--networks: ") + problem.what());
  }
  const std::size_t theirs = words.size();
  words.push_back(own_path());
  words.emplace_back("report-routes");
  if (!networks.empty()) words.push_back("--strata-networks=" + networks);
  const std::size_t ours = words.size() - theirs;
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  run_request request = parse_run(static_cast<int>(words.size()), pointers.data());
  if (request.arguments.size() != ours)
    throw user_error(in_quotes(request.arguments[0]) +
                     " is one argument too many: strata info --routes runs no program");
  if (request.nodes < 2) throw user_error(one_has_no_routes);
  return request;
}

int report_routes(int argc, char** argv) {
  runtime rt(options::parse(argc, argv));
  rt.run([] {
    if (num_nodes() < 2) throw user_error(one_has_no_routes);
    std::printf(
        "                               now                            at the start\n"
        "from    to  next  hops  by    half a round trip, us   MB/s  latency, us   MB/s  cost, "
        "us  over\n");
    for (unsigned a = 0; a < num_nodes(); ++a) {
      for (unsigned b = 0; b < num_nodes(); ++b) {
        if (a == b) continue;
        const measured m =
            call<measure>(on_node{static_cast<node_id_t>(a)}, static_cast<node_id_t>(b));
        std::printf("%4u  %4u  %4u  %4u  %-4s  %21.1f  %5.0f  %11s  %5s  %8s%s%s\n", a, b,
                    unsigned{m.next}, m.hops, m.transport.data(), m.half_round_trip_us,
                    m.megabytes_per_s, known(m.latency_us, 1).c_str(),
                    known(m.link_megabytes_per_s, 0).c_str(), known(m.cost_us, 1).c_str(),
                    m.network[0] != 0 ? "  " : "", m.network.data());
      }
    }
  });
  return 0;
}

}  // namespace strata::launcher
