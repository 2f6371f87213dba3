// SPDX-License-Identifier: Apache-2.0
#include "program_stalls.hpp"

#include <array>
#include <csignal>
#include <cstdio>

#include "strata/call.hpp"
#include "strata/error.hpp"
#include "strata/fiber.hpp"
#include "strata/message.hpp"
#include "strata/remote_thread.hpp"
#include "strata/semaphore.hpp"
#include "strata/thread.hpp"
#include "tests/common/require.hpp"

using namespace strata;
using test::require;

namespace {

void wait_for_nothing() {
  completion never;
  never.wait();
}

struct stopper : threaded {
  void start() { ::raise(SIGSTOP); }
};

struct sink : threaded {
  std::array<char, 1000> bytes;
  void start() {}
};

}  // namespace

void stall(runtime& rt) {
  rt.run([] {
    completion never(3);
    std::puts("waits");
    std::fflush(stdout);
    never.wait();
  });
}

void ask_and_stall(runtime& rt) {
  ::raise(SIGQUIT);
  stall(rt);
}

void stall_in_receive(runtime& rt) {
  rt.run([] { (void)this_thread::endpoint().receive_message(); });
}

void stall_in_semaphore(runtime& rt) {
  rt.run([] {
    counting_semaphore<> never(0);
    thread(thread_attributes{.name = "stuck"}, [&] { never.acquire(); }).join();
  });
}

void stall_elsewhere(runtime& rt) {
  rt.run([] { call<wait_for_nothing>(on_node{1}); });
}

// More than there is room for at a node that reads no more.
void flood_stopped(runtime& rt) {
  try {
    rt.run([] {
      invoke<stopper>(1);
      for (int i = 0; i < 50'000; ++i) invoke<sink>(1, std::array<char, 1000>{});
      completion never;
      never.wait();
    });
  } catch (const node_lost_error& e) {
    require(e.node() == 1, "names the node");
    std::printf("caught: %s\n", e.what());
  }
}
