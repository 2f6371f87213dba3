// SPDX-License-Identifier: Apache-2.0
// A job whose nodes come and go; its last argument says what it does. Node 0 prints what the test
// waits for before it makes a node come or leave, and "ok" when all was as it should be.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/cluster/engine/program_build.hpp"
#include "src/launch/job.hpp"
#include "strata/directory.hpp"
#include "strata/error.hpp"
#include "strata/fiber.hpp"
#include "strata/fork_join.hpp"
#include "strata/membership.hpp"
#include "strata/message.hpp"
#include "strata/remote_thread.hpp"
#include "strata/route.hpp"
#include "strata/runtime.hpp"
#include "tests/common/count_to_node.hpp"
#include "tests/common/fib_tokens.hpp"
#include "tests/common/require.hpp"
#include "tests/common/say.hpp"
#include "tests/members/program_abrupt.hpp"
#include "tests/members/program_leavers.hpp"

namespace {

using namespace strata;
using test::require;
using test::say;

void pause() { this_thread::sleep_for(std::chrono::milliseconds(2)); }

bool is_in(const std::vector<node_id_t>& all, node_id_t n) {
  return std::find(all.begin(), all.end(), n) != all.end();
}
bool is_there(node_id_t n) { return is_in(members(), n); }
// Until it is a member, or is not.
void wait_until(node_id_t n, bool is) {
  for (auto all = members(); is_in(all, n) != is; all = await_members_other_than(all)) {
  }
}
void wait_for(node_id_t n) { wait_until(n, true); }

// ---- computations go on while nodes come and go ----

std::atomic<long> ran_here{0};

struct counted_fib : threaded {
  int n;
  global_ptr<long> result;
  slot_ptr done;
  long r1, r2;
  void start() {
    ++ran_here;
    if (n < 2) {
      put_sync(n, result, done);
      terminate();
      return;
    }
    token<counted_fib>(n - 1, to_global(&r1), to_sptr(READY));
    token<counted_fib>(n - 2, to_global(&r2), to_sptr(READY));
  }
  void ready() {
    put_sync(r1 + r2, result, done);
    terminate();
  }
  fiber<&counted_fib::ready> READY{this, 2};
};

long serial_fib(int n) { return n < 2 ? n : serial_fib(n - 1) + serial_fib(n - 2); }
long forked_fib(int n) {
  if (n < 16) return serial_fib(n);
  const auto [a, b] =
      fork2join([n] { return forked_fib(n - 1); }, [n] { return forked_fib(n - 2); });
  return a + b;
}

struct ask : threaded {
  long* where;
  long value = 0;
  void start() { token<counted_fib>(21, to_global(&value), to_sptr(DONE)); }
  void done() {
    *where = value;
    terminate();
  }
  fiber<&ask::done> DONE{this, 1};
};

long tasks_of_this_node() { return ran_here.load(); }

// Who is about to leave still answers.
bool has_left(node_id_t n) {
  if (is_there(n)) return false;
  try {
    call<tasks_of_this_node>(on_node{n});
    return false;
  } catch (const node_left_error& e) {
    require(std::string(e.what()) == "node " + std::to_string(n) + " has left the job", e.what());
    return true;
  }
}

// Nodes 2 and 3 come, 1 and 2 leave; the work of every round is right. Until so many have come in
// all.
void rounds_until(runtime& rt, unsigned come) {
  long of_comers = 0;
  for (int round = 0;; ++round) {
    long answer = 0;
    rt.run([&] { invoke<ask>(node_id(), local_address(&answer)); });
    rt.wait_idle();
    require(answer == 10946, "a round of tokens");
    const bool over = rt.run([&] {
      require(forked_fib(24) == 46368, "a round of forks");
      for (const node_id_t n : members()) {
        if (n < 2) continue;
        try {
          of_comers += call<tasks_of_this_node>(on_node{n});
        } catch (const node_left_error&) {  // just now
        }
      }
      return num_nodes() == come && is_there(3) && has_left(1) && has_left(2);
    });
    if (round == 0) say("computes");
    if (over && of_comers > 0) return;
  }
}
void rounds(runtime& rt) { rounds_until(rt, 4); }
void rounds_of_five(runtime& rt) { rounds_until(rt, 5); }

// ---- names whose homes leave ----

std::string name_of(int i) { return "name " + std::to_string(i); }
constexpr int names_in_all = 100;

void find_all() {
  for (int i = 0; i < names_in_all; ++i)
    require(find_name<int>(name_of(i)).value_or(-1) == i, "a name is found: " + name_of(i));
}
int await_late() { return await_name<int>("late"); }

void names(runtime& rt) {
  rt.run([] {
    for (int i = 0; i < names_in_all; ++i) publish(name_of(i), i);
    // Somebody waits for a name, wherever that is at home.
    long heard = 0;
    thread waits([&] { heard = call<await_late>(on_node{0}); });
    say("published");
    while (is_there(1)) find_all();
    find_all();
    wait_for(2);
    on_every_node([] { find_all(); });
    publish("late", 7);
    waits.join();
    require(heard == 7, "a name that is awaited while its home leaves");
    for (int i = 0; i < names_in_all; ++i) require(withdraw(name_of(i)), "a name is withdrawn");
    on_every_node([] { require(!find_name<int>(name_of(3)), "nobody remembers it"); });
  });
}

// ---- what holds a node, and what becomes of who talks to one that leaves ----

std::atomic<bool> may_end{false};
void wait_here() {
  // Others come and go as they like, until it is this node's turn.
  for (auto all = members(); !is_leaving(); all = await_members_other_than(all)) {
  }
  require(!is_member(node_id()), "who is about to leave is no member");
  while (!may_end) pause();
}
void let_end() { may_end = true; }

void holds(runtime& rt) {
  rt.run([] {
    remote_thread guest(on_node{1}, [] { wait_here(); });
    using namespace std::chrono_literals;
    require(!await_members_other_than_for(members(), 1ms), "nobody comes or goes");
    require(await_members_other_than(std::array<node_id_t, 1>{0}) == members(), "there are more");
    require(!is_leaving(), "node 0 stays");
    say("holds");
    wait_until(1, false);  // it is about to leave
    require(is_there(0) && !is_there(1), "who is about to leave is no member");
    // It does what it has to, though, as long as it is there.
    call<let_end>(on_node{1});
    guest.join();
    while (!has_left(1)) pause();
    say("gone");
  });
}

void expect_gone(transfer receives, node_id_t n) {
  try {
    receives.wait();
    require(false, "nobody is there who could send");
  } catch (const node_left_error& e) {
    require(e.node() == n, "who has left");
  }
}

endpoint_id greet(endpoint_id home) {
  endpoint mine;
  mine.send_value(home, 1, node_id());
  return mine.id();
}

void call_node_1() { require(has_left(1), "also who comes later"); }

// Of the first node that comes, whatever its number is.
void greetings(runtime& rt) {
  rt.run([] {
    endpoint mine;
    say("listens");
    const node_id_t other = await_members_other_than(std::array<node_id_t, 1>{0}).back();
    const endpoint_id theirs = call<greet>(on_node{other}, mine.id());
    require(mine.receive_value<node_id_t>(any_endpoint_on(other), 1) == other, "who greets");
    std::array<std::byte, 8> of_node, of_endpoint;
    transfer receives_of_node = mine.start_receive(of_node, any_endpoint_on(other), 2);
    transfer receives = mine.start_receive(of_endpoint, theirs, 2);
    say("heard");
    while (!has_left(other)) pause();
    expect_gone(std::move(receives_of_node), other);
    expect_gone(std::move(receives), other);
    expect_gone(mine.start_receive(of_node, any_endpoint_on(other)), other);
    while (true) {
      try {
        mine.send_value(theirs, 2, 5);
      } catch (const endpoint_closed_error&) {
        break;
      }
    }
  });
}

// Node 1 is just coming when it is called, and then does not.
void door(runtime& rt) {
  rt.run([] {
    say("listens");
    for (bool lost = false; !lost;) {
      try {
        call<tasks_of_this_node>(on_node{1});
        require(false, "nobody answers");
      } catch (const misuse_error&) {  // not heard of yet
        pause();
      } catch (const node_lost_error&) {
        lost = true;
      }
    }
  });
}

// Node 1 never comes.
void numbers(runtime& rt) {
  rt.run([] {
    endpoint mine;
    std::array<std::byte, 8> buffer;
    transfer receives = mine.start_receive(buffer, any_endpoint_on(1));
    say("listens");
    wait_for(2);
    require(num_nodes() == 3 && !is_member(1), "numbers are given out once");
    require(has_left(1), "who calls a node that never came hears so");
    expect_gone(std::move(receives), 1);
    try {
      (void)route_to(1);  // where it was expected there is one
    } catch (const misuse_error&) {
    }
    // Who has come knows it as well.
    call<call_node_1>(on_node{2});
    say("heard");
    while (!has_left(2)) pause();
  });
}

// Says where it can be reached, as every node does, and is gone.
void die_at_the_door() {
  const auto line = launch::control_line::open();
  (void)line->exchange({"127.0.0.1", 1}, cluster::program_build());
  ::_exit(3);
}

// Of node 2, which node 0 reaches by node 1.
void far(runtime& rt) {
  rt.run([] {
    endpoint mine;
    say("listens");
    wait_for(2);
    require(route_to(2).hops == 2, "the way there");
    require(nearest_node(2, std::array<node_id_t, 2>{0, 1}) == 1, "who is nearer to it");
    require(nearest_node(0, std::array<node_id_t, 3>{5, 2, 1}) == 1, "who is nearer to this one");
    const endpoint_id theirs = call<greet>(on_node{2}, mine.id());
    require(mine.receive_value<node_id_t>(theirs, 1) == 2, "who greets");
    require(forked_fib(24) == 46368, "forks");
    say("heard");
    while (!has_left(2)) pause();
    say("gone");
    while (!has_left(1)) pause();
  });
}

void enter() {
  while (!is_member(node_id())) pause();
}
void nothing() {}
// Its `strata join` has succeeded.
void wait_until_joined(node_id_t n) {
  call<enter>(on_node{n});
  call<nothing>(on_node{n});  // the launcher has been told when this is answered
}

// Four hosts in a ring: node 0 reaches node 2 by node 1 or by node 3, of which one leaves.
void ring(runtime& rt) {
  rt.run([] {
    require(route_to(2).hops == 2, "the way there");
    const std::uint16_t first = route_to(2).next;
    bool said = false;
    test::count_to_node_2([&] {
      if (!std::exchange(said, true)) say(first == 1 ? "by node 1" : "by node 3");
      return has_left(first);
    });
    const std::uint16_t second = first == 1 ? 3 : 1;
    require(route_to(2).next == second, "the other way");
    bool again = false;
    int rounds = 0;
    test::count_to_node_2([&] {
      if (!std::exchange(again, true)) say("by the other");
      return ++rounds > 2000;
    });
    say("counted");
    wait_for(4);
    wait_until_joined(4);
    require(is_there(second), "the only one that is left stays");
  });
}

// Three hosts of which every two share a network, until that between the first and the last is
// slow.
void slows(runtime& rt) {
  rt.run([] {
    bool said = false;
    test::count_to_node_2([&] {
      if (!std::exchange(said, true)) say("counts");
      return route_to(2).hops == 2;
    });
    say("around");
    test::count_to_node_2([&] { return route_to(2).hops == 1; });
    say("back");
  });
}

// Node 2 comes from another host when node 1 has left; by what was measured before and since both
// nodes that are there go then.
bool has_measured(node_id_t n) { return route_to(n).is_measured; }
void measured(runtime& rt) {
  rt.run([] {
    require(has_measured(1), "measured when the job began");
    say("listens");
    while (!has_left(1)) pause();
    say("gone");
    wait_for(2);
    wait_until_joined(2);
    while (!has_measured(2) || !call<has_measured>(on_node{2}, node_id_t{0})) pause();
  });
}

// Of nodes 2 and 3; the last is reached by the one before it only, which came later.
void farther(runtime& rt) {
  rt.run([] {
    endpoint mine;
    say("listens");
    wait_for(3);
    require(route_to(3).hops == 3, "the way there");
    const endpoint_id theirs = call<greet>(on_node{3}, mine.id());
    require(mine.receive_value<node_id_t>(theirs, 1) == 3, "who greets");
    require(forked_fib(24) == 46368, "forks");
    say("heard");
    for (const node_id_t n : {3, 2, 1}) {
      while (!has_left(n)) pause();
    }
  });
}

void die() { std::raise(SIGKILL); }
void loss_of_a_newcomer(runtime& rt, bool when_it_has_joined) {
  try {
    rt.run([&] {
      say("listens");
      wait_for(1);
      if (when_it_has_joined) wait_until_joined(1);
      call<die>(on_node{1});
    });
    require(false, "a loss");
  } catch (const node_lost_error& e) {
    require(e.node() == 1, "which node");
    say("told");
  }
}
void loss(runtime& rt) { loss_of_a_newcomer(rt, true); }
void early_loss(runtime& rt) { loss_of_a_newcomer(rt, false); }

}  // namespace

int main(int argc, char** argv) {
  static const std::map<std::string_view, void (*)(runtime&)> actions{
      {"far", far},
      {"farther", farther},
      {"ring", ring},
      {"slows", slows},
      {"measured", measured},
      {"greetings", greetings},
      {"holds", holds},
      {"door", door},
      {"loss", loss},
      {"abrupt-loss", abrupt_loss},
      {"early-loss", early_loss},
      {"names", names},
      {"leave-behind", leave_behind},
      {"leave-frames", leave_frames},
      {"leave-between", leave_between},
      {"numbers", numbers},
      {"rounds", rounds},
      {"rounds-of-five", rounds_of_five}};
  try {
    const char* const node = std::getenv("STRATA_NODE");
    if (std::getenv("DIES_AT_THE_DOOR") != nullptr && node != nullptr &&
        std::string_view(node) == "1")
      die_at_the_door();
    const options settings = options::parse(argc, argv);
    runtime rt(settings);
    actions.at(argv[argc - 1])(rt);
    say("ok");
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
