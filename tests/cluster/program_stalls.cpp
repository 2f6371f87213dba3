// SPDX-License-Identifier: Apache-2.0
#include "program_stalls.hpp"

#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <vector>

#include "sched/scheduler.hpp"
#include "strata/call.hpp"
#include "strata/directory.hpp"
#include "strata/error.hpp"
#include "strata/fiber.hpp"
#include "strata/group.hpp"
#include "strata/message.hpp"
#include "strata/remote_thread.hpp"
#include "strata/semaphore.hpp"
#include "strata/thread.hpp"
#include "tests/cluster/program_support.hpp"
#include "tests/common/require.hpp"
#include "tests/common/stand_still.hpp"

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

// Stops its whole process, and somebody lets that go on ten seconds later.
struct pauser : threaded {
  slot_ptr over;
  void start() {
    test::stand_still(10);
    sync(over);
    terminate();
  }
};

// Blocks its worker.
struct deaf : threaded {
  slot_ptr begun;
  void start() {
    sync(begun);
    for (;;) ::pause();
  }
};

int same(int i) { return i; }

// Tokens and calls before, while and after it stands still.
void pause_node(runtime& rt, node_id_t who) {
  rt.run([who] {
    constexpr int rounds = 30;
    completion over;
    const auto begun = std::chrono::steady_clock::now();
    for (int i = 0; i < rounds; ++i) {
      if (i == rounds / 3) invoke<pauser>(who, over.sptr());
      require(test::fib_by_tokens(15) == 610, "adds up");
      require(call<same>(on_node{1}, i) == i, "answers");
    }
    over.wait();
    const auto passed = std::chrono::steady_clock::now() - begun;
    require(passed >= std::chrono::seconds(9), "has stood still");
    require(test::fib_by_tokens(15) == 610, "adds up afterwards");
  });
  std::puts("has paused");
}

}  // namespace

void pause_0(runtime& rt) { pause_node(rt, 0); }
void pause_1(runtime& rt) { pause_node(rt, 1); }

void stop_0(runtime& rt) {
  rt.run([] { ::kill(::getpid(), SIGSTOP); });
}

void stop_0_while_1_is_deaf(runtime& rt) {
  rt.run([] {
    completion begun;
    invoke<deaf>(1, begun.sptr());
    begun.wait();
    ::kill(::getpid(), SIGSTOP);
  });
}

void stall(runtime& rt) {
  rt.run([] {
    completion never(3);
    thread([] {
      while (!detail::this_worker().owner->somebody_waits()) this_thread::yield();
      std::puts("waits");
      std::fflush(stdout);
    }).detach();
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

// Larger than what is kept until it is received.
void stall_in_send(runtime& rt) {
  rt.run([] {
    const endpoint mine;
    const std::vector<std::byte> bytes(1 << 20);  // not handed over: its sender waits
    this_thread::endpoint().send(mine.id(), 0, bytes);
  });
}

void stall_in_semaphore(runtime& rt) {
  rt.run([] {
    counting_semaphore<> never(0);
    thread(thread_attributes{.name = "stuck"}, [&] { never.acquire(); }).join();
  });
}

void stall_for_a_name(runtime& rt) {
  rt.run([] { run_group(1, [](group&) { (void)await_name<int>("nobody has it"); }); });
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
