// SPDX-License-Identifier: Apache-2.0
// strata-predict: what a program would gain from more nodes. Its tokens run on simulated nodes,
// with the cluster's own protocols between them, each for as long as a token takes on this machine.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cinttypes>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <string>

#include "base/one_line.hpp"
#include "base/standard_output.hpp"
#include "base/values.hpp"
#include "os/clock.hpp"
#include "sim/simulated_job.hpp"
#include "strata/error.hpp"
#include "strata/runtime.hpp"
#include "tools/predict/programs.hpp"

namespace {

using strata::predict::program;
using strata::predict::result;

struct request {
  std::string kind, size;
  double latency_us = 5;
  double bandwidth = 1.25;  // GB/s, which is bytes per ns
  double message_us = 1;
  unsigned nodes_max = 4096;
  double token_ns = 0;
  std::uint64_t seed = 0;
  std::string balancing = "random";
  bool csv = false;
};

// What a simulation may take in its own time, 31 years. Sums of a few such times are in range.
constexpr std::int64_t time_max_ns = 1'000'000'000'000'000'000;

void check(const program& p, result found) {
  if (found != result::right) throw strata::error(p.name + ": the result is wrong");
}

// What a token takes on one worker of this machine, everything included: the median of three runs.
double measure_token_ns(const program& p) {
  std::array<double, 3> each{};
  for (double& ns : each) {
    strata::options o;
    o.workers = 1;
    strata::runtime runtime(o);
    const std::int64_t began = strata::os::now_ns();
    result found = result::awaited;
    runtime.run([&] { p.begin(&found); });
    runtime.wait_idle();
    check(p, found);
    const strata::worker_statistics total = runtime.stats().total();
    ns = static_cast<double>(strata::os::now_ns() - began) /
         static_cast<double>(total.activations + total.fibers);
  }
  std::sort(each.begin(), each.end());
  return each[1];
}

struct prediction {
  std::int64_t time_ns;
  std::uint64_t given, packets;
};

prediction simulate(const program& p, const request& r, unsigned nodes) {
  strata::sim::network_model network;
  network.latency_ns = static_cast<std::int64_t>(r.latency_us * 1000);
  network.bytes_per_ns = r.bandwidth;
  // Another one for each size: what happens to one job says nothing of the next.
  strata::sim::world world(network, r.seed + nodes);
  strata::sim::job_model model;
  model.nodes = static_cast<strata::sim::node_id>(nodes);
  model.how = strata::cluster::balancing_of(r.balancing);
  model.message_ns = static_cast<std::int64_t>(r.message_us * 1000);
  // Fractions of a ns add up: every so many tasks take one more.
  bool is_too_long = false;
  model.cost = [&, whole = static_cast<std::int64_t>(r.token_ns),
                part = r.token_ns - std::floor(r.token_ns),
                rest = 0.0](const strata::detail::task&) mutable {
    rest += part;
    const auto more = static_cast<std::int64_t>(rest);
    rest -= static_cast<double>(more);
    is_too_long = is_too_long || whole + more > time_max_ns - world.now_ns();
    return whole + more;
  };
  // Nothing is lost, so nothing is repeated, however long an answer takes.
  model.channel = {.first_timeout_ns = time_max_ns + 1,
                   .least_timeout_ns = time_max_ns + 1,
                   .most_timeout_ns = time_max_ns + 1};
  strata::sim::job job(world, model);
  result found = result::awaited;
  job.node(0).as_worker([&] { p.begin(&found); });
  if (!world.run([&] { return found != result::awaited; }, time_max_ns)) {
    if (is_too_long) throw strata::user_error(p.name + " would take more than 31 years");
    throw strata::error(p.name + ": the simulation stands still");
  }
  check(p, found);
  prediction all{world.now_ns(), 0, world.packets()};
  for (unsigned n = 0; n < nodes; ++n)
    all.given += job.node(static_cast<strata::sim::node_id>(n)).protocols.balance.counted().given;
  return all;
}

// CLI::Range takes what is not a number for one within.
CLI::Validator within(double first, double last) {
  return CLI::Validator(
      [=](std::string& text) -> std::string {
        double value = 0;
        if (CLI::detail::lexical_cast(text, value) && value >= first && value <= last) return {};
        return text + " is not a number from " + CLI::detail::to_string(first) + " to " +
               CLI::detail::to_string(last);
      },
      "", "within");
}

int predict(request r) {
  const program p = strata::predict::find_program(r.kind, r.size);
  if (r.token_ns == 0) r.token_ns = measure_token_ns(p);
  if (r.csv) {
    std::printf(
        "program,nodes,latency_us,bandwidth_gb_s,task_ns,time_us,speed_up,efficiency,tokens_moved,"
        "packets,seed\n");
  } else {
    std::printf(
        "%s, %.1f ns per task; latency %.2f us, bandwidth %.2f GB/s, %.2f us to send or "
        "receive a message; seed %" PRIu64 "\n%6s %12s %9s %11s %13s %10s\n",
        p.name.c_str(), r.token_ns, r.latency_us, r.bandwidth, r.message_us, r.seed, "nodes",
        "time, ms", "speed-up", "efficiency", "tokens moved", "packets");
  }
  double alone = 0;
  for (unsigned nodes = 1; nodes <= r.nodes_max; nodes *= 2) {
    const prediction at = simulate(p, r, nodes);
    const auto ns = static_cast<double>(at.time_ns);
    if (nodes == 1) alone = ns;
    const double speed_up = alone / ns;
    if (r.csv) {
      std::printf("%s,%u,%g,%g,%.2f,%.3f,%.3f,%.4f,%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n",
                  p.name.c_str(), nodes, r.latency_us, r.bandwidth, r.token_ns, ns / 1e3, speed_up,
                  speed_up / nodes, at.given, at.packets, r.seed);
    } else {
      std::printf("%6u %12.3f %9.2f %10.1f%% %13" PRIu64 " %10" PRIu64 "\n", nodes, ns / 1e6,
                  speed_up, 100 * speed_up / nodes, at.given, at.packets);
    }
    strata::flush_standard_output();  // before the next, larger one
  }
  return 0;
}

int parse_and_predict(CLI::App& cli, const request& r, int argc, char** argv) {
  try {
    cli.parse(argc, argv);
  } catch (const CLI::Success& help) {
    const int status = cli.exit(help);
    std::cout.flush();
    strata::flush_standard_output();
    return status;
  }
  return predict(r);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App cli("Predicts the speed-up of a program on 1, 2, 4, ... nodes of one worker each.");
  request r;
  cli.add_option("program", r.kind, "fib, nqueens or uts")->required();
  cli.add_option("size", r.size, "as for the application: 25, 11, T1")->required();
  cli.add_option("--latency-us", r.latency_us, "of a message, one way")
      ->capture_default_str()
      ->check(within(0.0, 1e6));
  cli.add_option("--bandwidth", r.bandwidth, "of each node's link, GB/s")
      ->capture_default_str()
      ->check(within(1e-6, 1e6));
  cli.add_option("--message-us", r.message_us, "to send or receive a message")
      ->capture_default_str()
      ->check(within(0.0, 1e6));
  cli.add_option("--nodes-max", r.nodes_max, "the largest job")
      ->capture_default_str()
      ->check(CLI::Range(1, 4096));
  cli.add_option("--task-ns", r.token_ns, "what a task takes (default: measured here)")
      ->check(within(0.1, 1e12));
  cli.add_option_function<std::string>(
         "--seed",
         [&](const std::string& text) {
           try {
             r.seed = strata::parse_whole(text, 0, UINT64_MAX);
           } catch (const strata::user_error& problem) {
             throw strata::user_error(std::string("--seed: ") + problem.what());
           }
         },
         "of what is random: with --task-ns the same one gives the same table")
      ->type_name("UINT")
      ->default_str(std::to_string(r.seed));
  cli.add_option("--balancing", r.balancing, "random, sender or informed, as --strata-balancing")
      ->capture_default_str()
      ->check(CLI::IsMember({"random", "sender", "informed"}));
  cli.add_flag("--csv", r.csv, "comma-separated values");
  try {
    return parse_and_predict(cli, r, argc, argv);
  } catch (const CLI::ParseError& e) {
    std::fprintf(stderr, "strata-predict: %s; 'strata-predict --help' lists what it takes\n",
                 strata::one_line(e.what()).c_str());
    return 2;
  } catch (const strata::user_error& e) {
    std::fprintf(stderr, "strata-predict: %s\n", strata::one_line(e.what()).c_str());
    return 2;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "strata-predict: %s\n", strata::one_line(e.what()).c_str());
    return 1;
  }
}
