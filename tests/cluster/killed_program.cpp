// SPDX-License-Identifier: Apache-2.0
// A program of which one node dies: its last three arguments say which one, when, and how far it
// gets until then. Prints "ok" on node 0 when all was done, "caught: ..." when a node was lost.
//
//   joining K   at its K-th call since the start
//   running K   at the K-th token that it runs; everybody runs `laps` at least
//   ending K    at its K-th call when all is done but the end
//   delay K     after K us
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>

#include "strata/fiber.hpp"
#include "strata/runtime.hpp"
#include "tests/cluster/steps.hpp"

namespace {

using namespace strata;

constexpr unsigned laps = 20;
constexpr unsigned depth = 6;

struct fate {
  bool is_mine = false;  // this node is the one
  std::string_view moment{};
  unsigned k = 0;
} what_comes;

// Round and round through all nodes.
struct lap : threaded {
  unsigned left;
  slot_ptr done;
  void start() {
    killed::count_token();
    if (left == 0) {
      sync(done);
    } else {
      invoke<lap>(static_cast<node_id_t>((node_id() + 1U) % num_nodes()), left - 1, done);
    }
    terminate();
  }
};

// Tokens that others may take.
struct branch : threaded {
  unsigned height;
  slot_ptr done;
  void start() {
    killed::count_token();
    if (height == 0) {
      sync(done);
    } else {
      const unsigned next = height - 1;
      const slot_ptr then = done;
      token<branch>(next, then);
      token<branch>(next, then);
    }
    terminate();
  }
};

// The last one that a node runs.
struct last : threaded {
  slot_ptr done;
  void start() {
    sync(done);
    if (what_comes.is_mine && what_comes.moment == "ending") killed::die_at_call(what_comes.k);
    terminate();
  }
};

void compute(runtime& rt) {
  rt.run([] {
    completion done(1 + (1U << depth));
    invoke<lap>(static_cast<node_id_t>(1 % num_nodes()), laps * num_nodes(), done.sptr());
    token<branch>(depth, done.sptr());
    done.wait();
  });
  rt.wait_idle();
  rt.run([] {
    completion done(num_nodes());
    for (unsigned n = 0; n < num_nodes(); ++n) invoke<last>(static_cast<node_id_t>(n), done.sptr());
    done.wait();
  });
  rt.wait_idle();
}

void prepare(const char* victim, std::string_view moment, unsigned k) {
  const char* const self = std::getenv("STRATA_NODE");
  what_comes = {self != nullptr && std::string_view(self) == victim, moment, k};
  if (!what_comes.is_mine) return;
  if (moment == "joining") killed::die_at_call(k);
  if (moment == "running") killed::die_at_token(k);
  if (moment == "delay") killed::die_after_us(k);
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 4) throw std::logic_error("who, when, and how far?");
  prepare(argv[argc - 3], argv[argc - 2], static_cast<unsigned>(std::atoi(argv[argc - 1])));
  {
    runtime rt(options::parse(argc, argv));
    compute(rt);
    std::printf("ok\n");
    std::fflush(stdout);
  }
  return 0;
} catch (const node_lost_error& e) {
  std::printf("caught: %s\n", e.what());
  return 1;
} catch (const std::exception& e) {
  std::printf("not ok: %s\n", e.what());
  return 1;
}
