// SPDX-License-Identifier: Apache-2.0
// A program that runs on several nodes; its last argument says what it does. Prints "ok" on node 0
// when all was as it should be, else what was not.
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "program_stalls.hpp"
#include "src/launch/build_id.hpp"
#include "src/launch/job.hpp"
#include "src/net/udp/seal.hpp"
#include "src/os/topology.hpp"
#include "strata/call.hpp"
#include "strata/fiber.hpp"
#include "strata/fork_join.hpp"
#include "strata/mailbox.hpp"
#include "strata/remote_thread.hpp"
#include "strata/runtime.hpp"
#include "tests/common/fib_tokens.hpp"
#include "tests/common/require.hpp"
#include "tests/common/slow_builds.hpp"

namespace {

using namespace strata;
using test::require;

// ---- tokens ----

long fib_by_tokens(int n) {
  long value = 0;
  completion done;
  token<test::fib_tokens>(n, to_global(&value), done.sptr());
  done.wait();
  return value;
}

void tokens(runtime& rt) {
  constexpr int n = test::scaled(24, 20);
  for (int round = 0; round < 3; ++round)
    require(rt.run([] { return fib_by_tokens(n); }) == (n == 24 ? 46368 : 6765), "fib(n)");
  rt.wait_idle();
}

// Where tokens ran: each adds one to its node's counter, which lives on node 0.
struct where : threaded {
  global_ptr<std::atomic<std::uint64_t>> counters;
  int depth;
  slot_ptr done;
  void start() {
    if (depth > 0) {
      const auto c = counters;
      const int next = depth - 1;
      const slot_ptr d = done;
      token<where>(c, next, d);
      token<where>(c, next, d);
    } else {
      // Long enough that others come and help themselves.
      volatile int busy = 0;
      for (int i = 0; i < 20'000; ++i) busy = busy + 1;
      invoke<count_it>(counters.node(), counters, node_id(), done);
    }
    terminate();
  }
  struct count_it : threaded {
    global_ptr<std::atomic<std::uint64_t>> counters;
    node_id_t node;
    slot_ptr done;
    void start() {
      counters.local()[node].fetch_add(1);
      sync(done);
      terminate();
    }
  };
};

void spread(runtime& rt) {
  constexpr int depth = 12;
  std::array<std::atomic<std::uint64_t>, 64> counters{};
  rt.run([&] {
    completion done(1U << depth);
    token<where>(to_global(counters.data()), depth, done.sptr());
    done.wait();
  });
  std::uint64_t sum = 0;
  unsigned helped = 0;
  for (const auto& c : counters) {
    sum += c;
    helped += c > 0 ? 1 : 0;
  }
  require(sum == 1U << depth, "every leaf ran once");
  require(helped >= 2, "another node helped");
}

// One token at a time, pushed by a fiber that neither pushes another nor ends before it has run: a
// neighbour that asks just then must not be told that there is nothing.
struct lone : threaded {
  global_ptr<std::uint64_t> ran;
  slot_ptr done;
  std::uint64_t number;
  void start() {
    put_sync(number, ran, done);
    terminate();
  }
};

// Data comes before its signal; here it is looked at without waiting for that.
__attribute__((no_sanitize("thread"))) std::uint64_t glance(const volatile std::uint64_t& value) {
  return value;
}

void lone_tokens(runtime& rt) {
  rt.run([] {
    constexpr std::uint64_t n = 500;
    std::uint64_t ran = 0;
    completion done(n);
    for (std::uint64_t i = 1; i <= n; ++i) {
      token<lone>(to_global(&ran), done.sptr(), i);
      while (glance(ran) != i) {
      }
    }
    done.wait();
  });
}

// Some fit on a shelf, and some do not.
struct large : threaded {
  std::array<std::uint64_t, 100> values;
  global_ptr<std::uint64_t> sum;
  slot_ptr done;
  void start() {
    std::uint64_t all = 0;
    for (const std::uint64_t v : values) all += v;
    volatile int busy = 0;
    for (int i = 0; i < 10'000; ++i) busy = busy + 1;
    put_sync(all, sum, done);
    terminate();
  }
};

void large_tokens(runtime& rt) {
  constexpr std::uint64_t n = 500;
  std::vector<std::uint64_t> sums(n), ran(n);
  rt.run([&] {
    completion done(2 * n);
    std::array<std::uint64_t, 100> values{};
    for (std::uint64_t i = 0; i < n; ++i) {
      values.fill(i);
      token<large>(values, to_global(&sums[i]), done.sptr());
      token<lone>(to_global(&ran[i]), done.sptr(), i);
    }
    done.wait();
  });
  for (std::uint64_t i = 0; i < n; ++i) {
    require(sums[i] == 100 * i, "all values arrived");
    require(ran[i] == i, "and the small ones");
  }
}

// Tokens that nobody waits for: what the root has left behind runs, on whatever shelf it lies.
void left_behind(runtime& rt) {
  for (int round = 1; round <= 50; ++round) {
    std::atomic<std::uint64_t> counters[64]{};
    rt.run([&] {
      for (int i = 0; i < 3; ++i) token<where>(to_global(&counters[0]), 3, slot_ptr{});
    });
    rt.wait_idle();
    std::uint64_t sum = 0;
    for (const auto& c : counters) sum += c;
    require(sum == 24, "every leaf ran once");
  }
}

// ---- split-phase operations ----

// Lives on node 1: reads a block of node 0, writes it back changed, many times over.
struct mirror : threaded {
  global_ptr<const std::uint32_t> from;
  global_ptr<std::uint32_t> to;
  unsigned count, rounds;
  slot_ptr done;
  std::vector<std::uint32_t> values;
  unsigned round = 0;
  mirror(global_ptr<const std::uint32_t> f, global_ptr<std::uint32_t> t, unsigned n, unsigned r,
         slot_ptr d)
      : from(f), to(t), count(n), rounds(r), done(d), values(n) {}
  void start() { fetch(); }
  void fetch() {
    if (round++ == rounds) {
      sync(done);
      return terminate();
    }
    block_move_sync(from, to_global(values.data()), count, to_sptr(HERE));
  }
  void here() {
    for (auto& v : values) v += 1;
    block_move_sync(to_global(values.data()), to, count, to_sptr(THERE));
  }
  void there() {
    // What was signalled is visible: read one value back.
    get_sync(to, &values[0], to_sptr(AGAIN));
  }
  fiber<&mirror::here> HERE{this, 1, 1};
  fiber<&mirror::there> THERE{this, 1, 1};
  fiber<&mirror::fetch> AGAIN{this, 1, 1};
};

void blocks(runtime& rt) {
  for (const unsigned count : {1U, 1000U, 1'000'000U}) {
    std::vector<std::uint32_t> values(count);
    for (unsigned i = 0; i < count; ++i) values[i] = i;
    constexpr unsigned rounds = 10;
    rt.run([&] {
      completion done;
      invoke<mirror>(1, global_ptr<const std::uint32_t>(node_id(), values.data()),
                     to_global(values.data()), count, rounds, done.sptr());
      done.wait();
    });
    for (unsigned i = 0; i < count; ++i) require(values[i] == i + rounds, "block moved");
  }
}

// Every node floods every other with puts and signals at once.
struct flooder : threaded {
  unsigned signals;
  slot_ptr done;
  std::array<std::uint64_t, 64> seen{};
  flooder(unsigned s, slot_ptr d) : signals(s), done(d) {}
  void start() {
    ALL.init(signals * (num_nodes() - 1));
    ALL_SENT.init(num_nodes() - 1);
    const global_ptr<std::uint64_t> mine = to_global(seen.data());
    const slot_ptr all = to_sptr(ALL);
    const slot_ptr sent = to_sptr(ALL_SENT);
    const unsigned times = signals;
    for (unsigned n = 0; n < num_nodes(); ++n) {
      if (n != node_id()) invoke<sender>(static_cast<node_id_t>(n), mine, all, sent, times);
    }
  }
  struct sender : threaded {
    global_ptr<std::uint64_t> target;
    slot_ptr all, sent;
    unsigned times;
    void start() {
      for (unsigned i = 1; i <= times; ++i) put_sync<std::uint64_t>(i, target + node_id(), all);
      sync(sent);
      terminate();
    }
  };
  void everything() {
    for (unsigned n = 0; n < num_nodes(); ++n) {
      if (n != node_id()) require(seen[n] == signals, "the last value arrived last");
    }
    sync(done);
    sync(to_sptr(END));
  }
  void all_sent() { sync(to_sptr(END)); }
  void end() { terminate(); }
  fiber<&flooder::everything> ALL{this, 1};
  fiber<&flooder::all_sent> ALL_SENT{this, 1};
  fiber<&flooder::end> END{this, 2};
};

void flood(runtime& rt) {
  rt.run([&] {
    const unsigned n = num_nodes();
    completion done(n);
    for (unsigned i = 0; i < n; ++i)
      invoke<flooder>(static_cast<node_id_t>(i), test::scaled(20'000U, 2'000U), done.sptr());
    done.wait();
  });
}

// ---- calls ----

long fib_by_calls(int n) {
  if (n < 2) return n;
  const auto [a, b] = fork2join([n] { return fib_by_calls(n - 1); }, call<fib_by_calls>(n - 2));
  return a + b;
}

node_id_t slow_here(int) {
  volatile int busy = 0;
  for (int i = 0; i < 300'000; ++i) busy = busy + 1;
  return node_id();
}

int throws_elsewhere(int) {
  slow_here(0);
  if (node_id() != 0) throw std::range_error("too far from home");
  return 1;
}

void calls(runtime& rt) {
  require(rt.run([] { return fib_by_calls(27); }) == 196418, "fib(27)");
  // Until one has really been made elsewhere.
  bool travelled = false;
  for (int i = 0; i < 10'000 && !travelled; ++i) {
    rt.run([&] {
      const auto [a, b] = fork2join([] { return slow_here(0); }, call<slow_here>(1));
      travelled |= b != a;
    });
  }
  require(travelled, "a call was made on another node");
}

void exceptions(runtime& rt) {
  bool caught = false;
  for (int i = 0; i < 10'000 && !caught; ++i) {
    try {
      rt.run([] { fork2join([] { return slow_here(0); }, call<throws_elsewhere>(1)); });
    } catch (const remote_error& e) {
      caught = true;
      require(e.node() != 0, "thrown elsewhere");
      require(e.type_name() == "std::range_error", e.type_name());
      require(e.message() == "too far from home", e.message());
      require(e.trace() == std::vector{e.node()} && e.hops() == 1, "straight from there");
      require(e.what() ==
                  "std::range_error on node " + std::to_string(e.node()) + ": too far from home",
              e.what());
    }
  }
  require(caught, "an exception came back");
}

// Of nodes 1 and 2 that which this is not.
int throws_beyond(int) {
  slow_here(0);
  if (node_id() == 0) return 1;
  return call<throws_elsewhere>(on_node{static_cast<node_id_t>(3 - node_id())}, 1);
}

// Round and round, until it has been on so many nodes more.
int throws_after(unsigned nodes) {
  if (nodes == 0) throw std::length_error("far enough");
  const auto next = static_cast<node_id_t>((node_id() + 1U) % num_nodes());
  return call<throws_after>(on_node{next}, nodes - 1);
}

// From a node to another, and from there to this one. Three nodes.
void exceptions_by_way(runtime& rt) {
  bool caught = false;
  for (int i = 0; i < 10'000 && !caught; ++i) {
    try {
      rt.run([] { fork2join([] { return slow_here(0); }, call<throws_beyond>(1)); });
    } catch (const remote_error& e) {
      caught = true;
      const auto between = static_cast<node_id_t>(3 - e.node());
      require(e.node() == 1 || e.node() == 2, "thrown beyond");
      require(e.type_name() == "std::range_error", e.type_name());
      require(e.message() == "too far from home", e.message());
      require(e.trace() == std::vector{e.node(), between} && e.hops() == 2, "by the other node");
      require(e.what() == "std::range_error on node " + std::to_string(e.node()) +
                              ": too far from home (by way of node " + std::to_string(between) +
                              ")",
              e.what());
    }
  }
  require(caught, "an exception came back by another node");

  // A thread that is awaited, and more nodes than are told.
  static constexpr unsigned nodes_on_its_way = 20;
  caught = false;
  try {
    rt.run([] { remote_thread(on_node{1}, call<throws_after>(nodes_on_its_way)).join(); });
  } catch (const remote_error& e) {
    caught = true;
    require(e.type_name() == "std::length_error" && e.message() == "far enough", e.what());
    require(e.hops() == nodes_on_its_way + 1, "how many nodes it left");
    require(e.trace().size() == remote_error::trace_max, "how many of them are told");
    for (unsigned i = 0; i < e.trace().size(); ++i)
      require(e.trace()[i] == (nodes_on_its_way + 1 - i) % 3, "in the order of its way");
  }
  require(caught, "an exception came back from far");
}

struct thrower : threaded {
  void start() { throw std::domain_error("no such place"); }
};

// A fiber that throws on another node fails the computation; the next one works.
void fiber_exceptions(runtime& rt) {
  for (int round = 0; round < 5; ++round) {
    bool caught = false;
    node_id_t last = 0;
    try {
      rt.run([&] {
        completion never;
        last = static_cast<node_id_t>(num_nodes() - 1);
        invoke<thrower>(last);
        fib_by_tokens(15);
        never.wait();
      });
    } catch (const remote_error& e) {
      caught = true;
      require(e.type_name() == "std::domain_error", e.type_name());
      require(e.message() == "no such place", e.message());
      require(e.trace() == std::vector{last} && e.hops() == 1, e.what());
    }
    require(caught, "the exception came");
    require(rt.run([] { return fib_by_tokens(18); }) == 2584, "and the next computation works");
  }
}

// ---- mailboxes ----

struct poster : threaded {
  global_ptr<mailbox> box;
  unsigned items;
  void start() {
    for (unsigned i = 0; i < items; ++i) drop_in(box, std::array<unsigned, 2>{node_id(), i});
    terminate();
  }
};

struct postmaster : threaded {
  unsigned items;
  slot_ptr done;
  std::map<unsigned, unsigned> next;
  unsigned got = 0;
  mailbox box{to_sptr(ARRIVED)};
  postmaster(unsigned i, slot_ptr d) : items(i), done(d) {}
  void start() {
    const unsigned each = items;
    const auto here = to_global(&box);
    for (unsigned n = 0; n < num_nodes(); ++n)
      invoke<poster>(static_cast<node_id_t>(n), here, each);
  }
  void arrived() {
    const auto item = retrieve_item<std::array<unsigned, 2>>(box);
    require(next[item[0]]++ == item[1], "items of one sender come in order");
    if (++got == items * num_nodes()) {
      sync(done);
      terminate();
    }
  }
  exclusive_fiber<&postmaster::arrived> ARRIVED{this, 1, 1};
};

void mailboxes(runtime& rt) {
  rt.run([] {
    completion done;
    token<postmaster>(500U, done.sptr());
    done.wait();
  });
}

// ---- ends ----

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
int dies_elsewhere(int) {
  slow_here(0);
  if (node_id() != 0) ::kill(::getpid(), SIGKILL);
  return 1;
}

void kill_caller(runtime& rt) {
  try {
    for (;;) rt.run([] { fork2join([] { return slow_here(0); }, call<dies_elsewhere>(1)); });
  } catch (const node_lost_error& e) {
    require(e.node() == 1, "names the node");
    std::printf("caught: %s\n", e.what());
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

// Told where it was sent from another node, as within one.
void signal_twice(slot_ptr s) {
  sync(s);
  sync(s);
}
void signal_too_many(runtime& rt) {
  try {
    rt.run([] {
      completion once(1);
      completion never(1);
      call<signal_twice>(on_node{1}, once.sptr());
      never.wait();
    });
    require(false, "waited for nothing");
  } catch (const misuse_error&) {
  }
}

void misuse(runtime& rt) {
  try {
    rt.run([] { invoke<leaver>(static_cast<node_id_t>(num_nodes())); });
    require(false, "there is no such node");
  } catch (const misuse_error&) {
  }
}

// ---- cores ----

// Node 1, of a job over UDP: the others know where it is, and never hear of it.
void die_before_it_connects() {
  const char* const number = std::getenv("STRATA_NODE");
  if (number == nullptr || number != std::string_view("1")) return;
  const auto line = launch::control_line::open();
  (void)line->exchange({line->job().bind_address, 9, net::udp::fresh_nonce()}, launch::build_id());
  ::kill(::getpid(), SIGKILL);
}

// Where the thread may run that makes the runtime, before it does so.
std::vector<int> cpus_at_first;

void any_core(runtime&) { require(os::allowed_cpus() == cpus_at_first, "any core"); }
void one_core(runtime&) { require(os::allowed_cpus().size() == 1, "a core of its own"); }

struct action {
  std::string_view name;
  void (*run)(runtime&);
};
constexpr action actions[] = {
    {"nothing", [](runtime&) {}},
    {"any-core", &any_core},
    {"one-core", &one_core},
    {"tokens", &tokens},
    {"spread", &spread},
    {"lone-tokens", &lone_tokens},
    {"large-tokens", &large_tokens},
    {"left-behind", &left_behind},
    {"blocks", &blocks},
    {"flood", &flood},
    {"calls", &calls},
    {"exceptions", &exceptions},
    {"exceptions-by-way", &exceptions_by_way},
    {"fiber-exceptions", &fiber_exceptions},
    {"mailboxes", &mailboxes},
    {"misuse", &misuse},
    {"signal-too-many", &signal_too_many},
    {"stall", &stall},
    {"ask-and-stall", &ask_and_stall},
    {"stall-in-receive", &stall_in_receive},
    {"stall-in-semaphore", &stall_in_semaphore},
    {"stall-elsewhere", &stall_elsewhere},
    {"flood-stopped", &flood_stopped},
    {"kill", [](runtime& rt) { lose<killer>(rt, SIGKILL); }},
    {"stop", [](runtime& rt) { lose<killer>(rt, SIGSTOP); }},
    {"kill-thief", &kill_thief},
    {"kill-caller", &kill_caller},
    {"kill-victim", &kill_victim},
    {"leave", [](runtime& rt) { lose<leaver>(rt); }},
};

}  // namespace

int main(int argc, char** argv) try {
  cpus_at_first = os::allowed_cpus();
  const std::string_view what = argc > 1 ? argv[argc - 1] : "";
  if (what == "dies-before-it-connects") die_before_it_connects();
  runtime rt(options::parse(argc, argv));
  for (const action& a : actions) {
    if (what != a.name) continue;
    a.run(rt);
    std::printf("ok\n");
    return 0;
  }
  throw std::logic_error("what?");
} catch (const std::exception& e) {
  std::printf("not ok: %s\n", e.what());
  return 1;
}
