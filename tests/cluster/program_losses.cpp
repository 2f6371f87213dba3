// SPDX-License-Identifier: Apache-2.0
#include "program_losses.hpp"

#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <type_traits>
#include <vector>

#include "program_support.hpp"
#include "strata/call.hpp"
#include "strata/error.hpp"
#include "strata/fiber.hpp"
#include "strata/fork_join.hpp"
#include "strata/message.hpp"
#include "strata/remote_thread.hpp"
#include "strata/thread.hpp"
#include "tests/common/require.hpp"
#include "tests/common/say.hpp"

namespace {

using namespace strata;
using test::lone;
using test::require;
using test::slow_here;

struct killer : threaded {
  int number;
  void start() {
    ::kill(::getpid(), number);
    for (;;) ::pause();
  }
};

// Ends the node that runs it, unless that is its home.
struct far_killer : threaded {
  node_id_t home;
  slot_ptr done;
  void start() {
    if (node_id() != home) ::kill(::getpid(), SIGKILL);
    sync(done);
    terminate();
  }
};

// Ends its own node while some of its tokens are on their way to others, and some wait there.
struct generous_killer : threaded {
  static constexpr std::uint64_t tokens = 20'000;
  global_ptr<std::uint64_t> ran;
  slot_ptr done;
  void start() {
    for (std::uint64_t i = 0; i < tokens; ++i) token<lone>(ran + i, done, i);
    ::kill(::getpid(), SIGKILL);
  }
};

// A folder that all nodes of a host see, and nobody else can make or remove.
using leash = std::array<char, 64>;

// Ends its node when the folder has gone.
struct obedient : threaded {
  leash folder;
  void start() {
    while (::access(folder.data(), F_OK) == 0) ::sched_yield();
    ::kill(::getpid(), SIGKILL);
  }
};

struct leaver : threaded {
  void start() { ::_exit(0); }
};

template <class F, class... A>
void lose(runtime& rt, A... arguments) {
  const auto wait_in_vain = [&] {
    rt.run([&] {
      completion never;
      invoke<F>(1, arguments...);
      never.wait();
    });
    require(false, "waited for nothing");
  };
  try {
    wait_in_vain();
  } catch (const node_lost_error& e) {
    require(e.node() == 1, "names the node");
    std::printf("caught: %s\n", e.what());
  }
  // Whatever needs the others fails at once from now on.
  try {
    wait_in_vain();
  } catch (const node_lost_error&) {
  }
}

// What is on node 1, for whoever sends there and waits for nothing.
struct target {
  global_ptr<std::uint64_t> word;
  slot_ptr slot;
};
static_assert(std::is_trivially_copyable_v<target>);
target target_here() {
  static std::uint64_t word = 0;
  static slot* const often = new completion(1U << 30);  // for as long as the process lives
  return {to_global(&word), slot_ptr(node_id(), often)};
}
struct idle : threaded {
  void start() { terminate(); }
};
struct sends : threaded {
  global_ptr<std::uint64_t> word;
  void start() {
    put_sync(1, word, slot_ptr());
    terminate();
  }
};

constexpr void (*sends_without_a_wait[])(const target&) = {
    [](const target& t) { put_sync(1, t.word, slot_ptr()); },
    [](const target&) { invoke<idle>(1); },
    [](const target& t) { sync(t.slot); },
    [](const target& t) { incr_sync(t.slot, 1); },
    [](const target& t) {
      static std::uint64_t here = 1;
      block_move_sync(to_global(&here), t.word, 1, slot_ptr());
    },
    [](const target& t) {
      static std::uint64_t here;
      get_sync(t.word, &here, slot_ptr());
    },
    [](const target&) { remote_thread(1, [] {}).detach(); },
};

// Until node 1 is lost; how many of what there were by then is said.
template <class F>
void count_until_lost(const char* what, const std::uint64_t& count, F forever) {
  try {
    forever();
  } catch (const node_lost_error& e) {
    require(e.node() == 1, "names the node");
    test::say("node " + std::to_string(node_id()) + " has " + what + " " + std::to_string(count) +
              ": " + e.what());
  }
}

// Numbers from there, in order, and each of them back.
void answer_until_lost(endpoint_id home) {
  endpoint here;
  std::uint64_t received = 0;
  count_until_lost("received", received, [&] {
    for (here.send_value(home, 1, here.id());; ++received) {
      const auto number = here.receive_value<std::uint64_t>(home, 2);
      require(number == received, "once and in order");
      here.send_value(home, 3, number);
    }
  });
}

node_id_t here() { return node_id(); }
node_id_t ask_node_3() { return call<here>(on_node{3}); }

int dies_elsewhere(int) {
  slow_here(0);
  if (node_id() != 0) ::kill(::getpid(), SIGKILL);
  return 1;
}

}  // namespace

void lose_killed(runtime& rt) { lose<killer>(rt, SIGKILL); }
void lose_stopped(runtime& rt) { lose<killer>(rt, SIGSTOP); }
void lose_leaver(runtime& rt) { lose<leaver>(rt); }

// A thief dies with what it has just taken in its hands.
void kill_thief(runtime& rt) {
  try {
    rt.run([] {
      for (;;) {
        completion done(200);
        for (int i = 0; i < 200; ++i) token<far_killer>(node_id(), done.sptr());
        done.wait();
      }
    });
  } catch (const node_lost_error& e) {
    require(e.node() == 1, "names the node");
    std::printf("caught: %s\n", e.what());
  }
}

// The same with calls, whose home waits for their results.
void kill_caller(runtime& rt) {
  try {
    for (;;) rt.run([] { fork2join([] { return slow_here(0); }, call<dies_elsewhere>(1)); });
  } catch (const node_lost_error& e) {
    require(e.node() == 1, "names the node");
    std::printf("caught: %s\n", e.what());
  }
}

// Who waits for nothing hears of the loss when it sends something.
void kill_receiver(runtime& rt) {
  target there;
  for (const auto send : sends_without_a_wait) {
    try {
      rt.run([&] {
        if (!there.word) {
          there = call<target_here>(on_node{1});
          invoke<killer>(1, SIGKILL);
        }
        try {
          for (;;) send(there);
        } catch (const node_lost_error& e) {
          require(e.node() == 1, "names the node");
          std::printf("caught: %s\n", e.what());
        }
      });
    } catch (const node_lost_error&) {  // the run in which it was lost fails, whatever was caught
      require(send == sends_without_a_wait[0], "only that one");
    }
  }
  // What leaves a fiber ends a computation also then.
  try {
    rt.run([&] {
      completion never;
      token<sends>(there.word);
      never.wait();
    });
    require(false, "waited for nothing");
  } catch (const node_lost_error& e) {
    require(e.node() == 1, "names the node");
  }
}

// A victim dies with tokens on its shelf.
void kill_victim(runtime& rt) {
  try {
    rt.run([] {
      std::vector<std::uint64_t> ran(generous_killer::tokens);
      completion never(generous_killer::tokens + 1);
      invoke<generous_killer>(1, to_global(ran.data()), never.sptr());
      never.wait();
    });
    require(false, "waited for nothing");
  } catch (const node_lost_error& e) {
    require(e.node() == 1, "names the node");
    std::printf("caught: %s\n", e.what());
  }
}

// Node 1 asks node 3 again and again; the test sees to it that no answer comes.
void talk_across(runtime& rt) {
  try {
    rt.run([] {
      const on_node first{1};
      require(call<ask_node_3>(first) == 3, "an answer");
      std::printf("talking\n");
      std::fflush(stdout);
      for (;;) (void)call<ask_node_3>(first);
    });
  } catch (const node_lost_error& e) {
    std::printf("caught: %s\n", e.what());
  }
}

// Node 0 floods node 3; node 2 waits in vain. With much under way node 1, which forwards it, dies.
void kill_gateway(runtime& rt) {
  constexpr std::uint64_t in_time = 500, at_once = 64;
  try {
    rt.run([] {
      endpoint mine;
      remote_thread(
          on_node{2}, [](endpoint_id home) { answer_until_lost(home); }, mine.id())
          .detach();
      (void)mine.receive_value<endpoint_id>(any_endpoint, 1);
      remote_thread(
          on_node{3}, [](endpoint_id home) { answer_until_lost(home); }, mine.id())
          .detach();
      const auto there = mine.receive_value<endpoint_id>(any_endpoint, 1);
      std::uint64_t acknowledged = 0, answered = 0;
      thread answers([&] {
        count_until_lost("heard", answered, [&] {
          for (;; ++answered)
            require(mine.receive_value<std::uint64_t>(there, 3) == answered, "once and in order");
        });
      });
      std::array<std::uint64_t, at_once> numbers{};
      std::array<transfer, at_once> sends;
      count_until_lost("sent", acknowledged, [&] {
        for (std::uint64_t i = 0;; ++i) {
          transfer& next = sends[i % at_once];
          if (next.valid()) {
            next.wait();
            if (++acknowledged == in_time) invoke<killer>(1, SIGKILL);
          }
          numbers[i % at_once] = i;
          next = mine.start_synchronous_send(there, 2, bytes_of(numbers[i % at_once]));
        }
      });
      answers.join();
    });
    require(false, "nobody is lost");
  } catch (const node_lost_error& e) {
    std::printf("caught: %s\n", e.what());
  }
}

// When no task waits, but the program does until nothing is left to do. What that node had to do
// is not done, and never will be.
void kill_under_wait_idle(runtime& rt) {
  leash folder{{"/tmp/strata-leash-XXXXXX"}};
  require(::mkdtemp(folder.data()) != nullptr, "makes a folder");
  rt.run([&] { invoke<obedient>(1, folder); });
  ::rmdir(folder.data());
  for (const char* const when : {"while it waits", "for ever after"}) {
    try {
      rt.wait_idle();
      require(false, when);
    } catch (const node_lost_error& e) {
      require(e.node() == 1, "names the node");
      std::printf("caught: %s\n", e.what());
    }
  }
}
