// SPDX-License-Identifier: Apache-2.0
// A node of a job that the site's tools have made. Does what its last word says.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "strata/fiber.hpp"
#include "strata/launched.hpp"
#include "strata/runtime.hpp"

extern char** environ;

namespace {

using namespace strata;

// Every node says where it is.
struct caller : threaded {
  global_ptr<unsigned> seen;
  slot_ptr done;
  void start() {
    put_sync<unsigned>(node_id() + 1U, seen + node_id(), done);
    terminate();
  }
};

unsigned count_nodes(runtime& rt) {
  return rt.run([] {
    const unsigned n = num_nodes();
    std::vector<unsigned> seen(n);
    completion all(n);
    for (unsigned i = 0; i < n; ++i)
      invoke<caller>(static_cast<node_id_t>(i), to_global(seen.data()), all.sptr());
    all.wait();
    for (unsigned i = 0; i < n; ++i) {
      if (seen[i] != i + 1) throw std::logic_error("a node has not called");
    }
    return n;
  });
}

struct killer : threaded {
  void start() {
    ::kill(::getpid(), SIGKILL);
    for (;;) ::pause();
  }
};

void kill_node_1(runtime& rt) {
  try {
    rt.run([] {
      completion never;
      invoke<killer>(1);
      never.wait();
    });
  } catch (const node_lost_error& e) {
    std::printf("caught: %s\n", e.what());
    std::fflush(stdout);
    throw;
  }
}

// Node 0 kills node 1 and does not look up any more.
void kill_node_1_and_look_away(runtime& rt) {
  rt.run([] { invoke<killer>(1); });
  for (;;) ::pause();
}

// A program that a node starts is no node.
void start_child(const char* self) {
  pid_t pid = 0;
  std::string program = self;
  std::string what = "count";
  std::vector<char*> words{program.data(), what.data(), nullptr};
  if (::posix_spawn(&pid, self, nullptr, nullptr, words.data(), environ) != 0)
    throw std::runtime_error("no child");
  ::waitpid(pid, nullptr, 0);
}

void sleep_for_ever() {
  std::puts("asleep");
  std::fflush(stdout);
  for (;;) ::pause();
}

int act(const char* self, const options& settings, std::string_view what) {
  const unsigned launched = launched_node().value_or(0);
  if (what == "late" && launched == 1) sleep_for_ever();
  if (what == "absent" && launched == 0) sleep_for_ever();
  runtime rt(settings);
  if (what == "kill") kill_node_1(rt);
  if (what == "look-away") kill_node_1_and_look_away(rt);
  if (what == "sleep") sleep_for_ever();
  std::printf("%u nodes, node %u: %s\n", count_nodes(rt), launched, rt.describe().c_str());
  std::fflush(stdout);
  if (what == "child") start_child(self);
  if (what == "second") {
    runtime second(settings);
    std::printf("then %u\n", count_nodes(second));
  }
  return what == "exit-3" ? 3 : 0;
}

}  // namespace

int main(int argc, char** argv) try {
  const options settings = options::parse(argc, argv);
  return act(argv[0], settings, argc > 1 ? argv[argc - 1] : "");
} catch (const std::exception& e) {
  if (launched_node().value_or(0) == 0) std::fprintf(stderr, "program: %s\n", e.what());
  return 1;
}
