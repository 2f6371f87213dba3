// SPDX-License-Identifier: Apache-2.0
#include "program_asleep.hpp"

#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "../common/require.hpp"
#include "../common/thread_asleep.hpp"
#include "os/futex.hpp"
#include "program_support.hpp"
#include "sched/place.hpp"
#include "strata/message.hpp"
#include "strata/remote_thread.hpp"
#include "strata/route.hpp"
#include "strata/thread.hpp"

namespace {

using namespace strata;
using test::last_node;
using test::require;

constexpr message_tag asked_tag = 7;
constexpr message_tag answered_tag = 6;

struct asked {
  endpoint_id by;
  int round;
  pid_t awaited;  // sleeps before the answer comes, if it is not 0
};

void answer_rounds(endpoint_id to, int rounds) {
  endpoint& mine = this_thread::endpoint();
  mine.send_value(to, 5, mine.id());
  for (int round = 0; round < rounds; ++round) {
    const auto a = mine.receive_value<asked>(any_endpoint, asked_tag);
    while (a.awaited != 0 && !test::sleeps(a.awaited)) this_thread::yield();
    mine.send_value(a.by, answered_tag, a.round);
  }
}

// Somebody on the last node who answers so often.
endpoint_id answerer(int rounds, remote_thread& thread) {
  endpoint& mine = this_thread::endpoint();
  thread = remote_thread(on_node{last_node()}, call<answer_rounds>(mine.id(), rounds));
  return mine.receive_value<endpoint_id>(any_endpoint, 5);
}

void ask(endpoint_id to, int round, pid_t awaited = 0) {
  endpoint& mine = this_thread::endpoint();
  mine.send_value(to, asked_tag, asked{mine.id(), round, awaited});
  require(mine.receive_value<int>(to, answered_tag) == round, "an answer");
}

constexpr message_tag next_tag = 4;
constexpr message_tag passed_tag = 3;

void pass_on(endpoint_id home, int rounds) {
  endpoint& mine = this_thread::endpoint();
  mine.send_value(home, next_tag, mine.id());
  const auto next = mine.receive_value<endpoint_id>(home, next_tag);
  for (int round = 0; round < rounds; ++round)
    mine.send_value(next, passed_tag, mine.receive_value<int>(any_endpoint, passed_tag) + 1);
}

struct switches {
  long naps_of_receivers = 0;  // how often this process's receivers have slept
  long lost = 0;               // how often some thread of this process had to leave its core
};
using switches_by_thread = std::map<std::string, switches>;
switches_by_thread switches_so_far() {
  switches_by_thread all;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string text;
    std::getline(std::ifstream(thread.path() / "comm"), text);
    const bool receives = text == "strata-receive";
    switches& own = all[thread.path().filename()];
    long count = 0;
    for (std::ifstream status(thread.path() / "status"); status >> text;) {
      if (text == "voluntary_ctxt_switches:" && status >> count && receives)
        own.naps_of_receivers = count;
      if (text == "nonvoluntary_ctxt_switches:" && status >> count) own.lost = count;
    }
  }
  return all;
}

// Of the threads that lived all the time: what others did is gone with them, or from before.
switches between(const switches_by_thread& before, const switches_by_thread& after) {
  switches sum;
  for (const auto& [thread, then] : before) {
    const auto now = after.find(thread);
    if (now == after.end()) continue;
    sum.naps_of_receivers += now->second.naps_of_receivers - then.naps_of_receivers;
    sum.lost += now->second.lost - then.lost;
  }
  return sum;
}

// How long this machine was not allowed to run, in ticks; 0 if it is no guest of another.
long stolen_ticks() {
  std::string name;
  std::array<long, 8> time{};
  std::ifstream stat("/proc/stat");
  stat >> name;
  for (long& t : time) stat >> t;
  return time.back();
}

}  // namespace

// A node of which everything waits for messages is not busy because it also waits for a time. Its
// workers are told to sleep at once: before the answer comes.
void waits_with_a_deadline(runtime& rt) {
  rt.run([] {
    constexpr int rounds = 100;
    endpoint& mine = this_thread::endpoint();
    remote_thread other;
    const endpoint_id to = answerer(rounds, other);
    for (int round = 0; round < rounds; ++round) {
      int in = -1;
      transfer t = mine.start_receive(std::as_writable_bytes(std::span(&in, 1)), to, answered_tag);
      mine.send_value(to, asked_tag, asked{mine.id(), round, 0});
      require(t.wait_for(std::chrono::seconds(60)).has_value() && in == round,
              "a message before the deadline");
    }
    other.join();
  });
}

// A message for a thread wakes the worker that sleeps for want of it, not a receiver before. A
// worker that others have driven off its core leaves the next messages to a receiver, by intention,
// so batches in which that happened say nothing.
void wakes_one(runtime& rt) {
  rt.run([] {
    // Through memory a worker waits for that and for its own node at once, by a call of Linux 5.16.
    if (route_to(last_node()).transport == "shm" && !os::can_wait_on_two()) {
      std::puts("old kernel");
      return;
    }
    constexpr int batches_max = 60;
    constexpr int rounds = 50;
    // From a batch before that was disturbed: so many are left to a receiver. Not counted.
    constexpr int left_over = 16;
    // Those whom somebody drove off for a moment.
    constexpr long naps_max = rounds / 2, lost_max = rounds / 5;
    // An answer that comes while who has asked still looks for work is for a receiver.
    const auto ask_and_sleep = [](endpoint_id to, int round) { ask(to, round, gettid()); };
    const auto driven_off = [] { return detail::this_place().idle_spin.times_lost(); };
    const long stolen_at_first = stolen_ticks();
    long unexplained = 0;
    for (int batch = 0; batch < batches_max; ++batch) {
      remote_thread other;
      const endpoint_id to = answerer(left_over + rounds, other);
      const std::uint64_t driven_off_before = driven_off();
      for (int round = 0; round < left_over; ++round) ask_and_sleep(to, round);
      const switches_by_thread before = switches_so_far();
      for (int round = 0; round < rounds; ++round) ask_and_sleep(to, left_over + round);
      const switches meanwhile = between(before, switches_so_far());
      const bool believes_so = driven_off() != driven_off_before;
      other.join();
      if (believes_so && meanwhile.lost == 0) ++unexplained;
      if (believes_so || meanwhile.lost > lost_max) continue;
      require(meanwhile.naps_of_receivers < naps_max, std::to_string(meanwhile.naps_of_receivers) +
                                                          " naps of receivers in " +
                                                          std::to_string(rounds) + " rounds");
      return;
    }
    // A worker may believe that others want its core in batches in which the kernel has taken it
    // away, or the machine that this is a guest of: for half a millisecond each, and what that has
    // not counted yet is less than a tick.
    const long stolen_us =
        (stolen_ticks() - stolen_at_first + 1) * 1'000'000 / sysconf(_SC_CLK_TCK);
    require(unexplained * 500 <= stolen_us,
            "in " + std::to_string(unexplained) + " of " + std::to_string(batches_max) +
                " batches a worker believes that others want its core, which nobody had");
    std::puts("busy");
  });
}

// Guests come and go while the place's own thread takes in messages.
void guests_come_and_go(runtime& rt) {
  constexpr int rounds = 500;
  endpoint_id to;
  rt.run([&] {
    remote_thread other;
    to = answerer(rounds, other);
    other.detach();
  });
  for (int round = 0; round < rounds; ++round) rt.run([&] { ask(to, round); });
}

// From node to node, each of which sleeps until it comes: by whatever the one before reaches it.
void goes_around(runtime& rt) {
  rt.run([] {
    constexpr int rounds = 100;
    endpoint& mine = this_thread::endpoint();
    std::vector<endpoint_id> all{mine.id()};
    std::vector<remote_thread> others;
    for (unsigned n = 1; n < num_nodes(); ++n) {
      others.emplace_back(on_node{static_cast<node_id_t>(n)}, call<pass_on>(mine.id(), rounds));
      all.push_back(mine.receive_value<endpoint_id>(any_endpoint, next_tag));
    }
    for (std::size_t n = 1; n < all.size(); ++n)
      mine.send_value(all[n], next_tag, all[(n + 1) % all.size()]);
    for (int round = 0; round < rounds; ++round) {
      mine.send_value(all[1], passed_tag, round);
      require(mine.receive_value<int>(all.back(), passed_tag) ==
                  round + static_cast<int>(others.size()),
              "what has gone around");
    }
    for (remote_thread& other : others) other.join();
  });
}
