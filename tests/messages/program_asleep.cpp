// SPDX-License-Identifier: Apache-2.0
#include "program_asleep.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "../common/require.hpp"
#include "program_support.hpp"
#include "strata/message.hpp"
#include "strata/remote_thread.hpp"
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
};

void answer_rounds(endpoint_id to, int rounds) {
  endpoint& mine = this_thread::endpoint();
  mine.send_value(to, 5, mine.id());
  for (int round = 0; round < rounds; ++round) {
    const auto a = mine.receive_value<asked>(any_endpoint, asked_tag);
    mine.send_value(a.by, answered_tag, a.round);
  }
}

// Somebody on the last node who answers so often.
endpoint_id answerer(int rounds, remote_thread& thread) {
  endpoint& mine = this_thread::endpoint();
  thread = remote_thread(on_node{last_node()}, call<answer_rounds>(mine.id(), rounds));
  return mine.receive_value<endpoint_id>(any_endpoint, 5);
}

void ask(endpoint_id to, int round) {
  endpoint& mine = this_thread::endpoint();
  mine.send_value(to, asked_tag, asked{mine.id(), round});
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

// How often this process's receivers have slept.
long naps_of_receivers() {
  long naps = 0;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string text;
    std::getline(std::ifstream(thread.path() / "comm"), text);
    if (text != "strata-receive") continue;
    for (std::ifstream status(thread.path() / "status"); status >> text;) {
      if (text == "voluntary_ctxt_switches:" && status >> text) naps += std::stol(text);
    }
  }
  return naps;
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
      mine.send_value(to, asked_tag, asked{mine.id(), round});
      require(t.wait_for(std::chrono::seconds(60)).has_value() && in == round,
              "a message before the deadline");
    }
    other.join();
  });
}

// A message for a thread wakes the worker that sleeps for want of it, not a receiver before.
void wakes_one(runtime& rt) {
  // The call on which two things are waited for at once: Linux 5.16.
  if (::syscall(SYS_futex_waitv, nullptr, 0, 0, nullptr, 0) != -1 || errno != EINVAL) return;
  rt.run([] {
    // Whoever loses its core just before it sleeps leaves it to a receiver: on a busy machine it
    // takes a while until some batch is not disturbed.
    constexpr int batches_max = 10;
    constexpr int rounds_at_once = 50;
    long fewest = rounds_at_once;
    for (int batch = 0; batch < batches_max && fewest >= rounds_at_once / 2; ++batch) {
      remote_thread other;
      const endpoint_id to = answerer(rounds_at_once, other);
      const long before = naps_of_receivers();
      for (int round = 0; round < rounds_at_once; ++round) ask(to, round);
      fewest = std::min(fewest, naps_of_receivers() - before);
      other.join();
    }
    require(fewest < rounds_at_once / 2, std::to_string(fewest) + " naps of receivers");
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
