// SPDX-License-Identifier: Apache-2.0
// Two processes that talk, and how what they do is timed. The parent measures; the child answers,
// and ends with it.
#pragma once

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/common/measure.hpp"

namespace bench {

constexpr std::size_t message_bytes_max = std::size_t{4} << 20;

// What who waits does until something has come, or until there is room.
enum class waiting { looks, sleeps, looks_first };

// MODE [BYTES [COUNT]]:
//   latency   half round trips; both sides spin
//   adaptive  the same; whoever has looked for wait_limit::most_s, sleeps
//   sleeping  round trips; whoever waits, sleeps
//   one-core  the same with both processes on one core
//   stream, adaptive-stream, sleeping-stream
//             messages one way, as fast as they go; whoever waits does as above
struct exchange {
  std::string mode;
  waiting waits = waiting::looks;
  std::size_t bytes = 64;
  std::size_t count = 0;  // of messages, or of round trips

  explicit exchange(const std::vector<std::string>& given) {
    mode = given.empty() ? "latency" : given[0];
    static constexpr std::pair<std::string_view, waiting> modes[] = {
        {"latency", waiting::looks},          {"adaptive", waiting::looks_first},
        {"sleeping", waiting::sleeps},        {"one-core", waiting::sleeps},
        {"stream", waiting::looks},           {"adaptive-stream", waiting::looks_first},
        {"sleeping-stream", waiting::sleeps},
    };
    const auto* const known =
        std::find_if(std::begin(modes), std::end(modes), [&](auto& m) { return m.first == mode; });
    if (known == std::end(modes)) {
      arguments::refuse(
          "the mode is latency, adaptive, sleeping, one-core, stream, adaptive-stream or "
          "sleeping-stream, not " +
          mode);
    }
    waits = known->second;
    const auto number = [&](std::size_t i, std::size_t otherwise) -> std::size_t {
      if (given.size() <= i) return otherwise;
      char* end = nullptr;
      const unsigned long long n = std::strtoull(given[i].c_str(), &end, 10);
      if (given[i].empty() || *end != '\0' || n == 0)
        arguments::refuse("bytes and counts are numbers from 1 on, not " + given[i]);
      return n;
    };
    bytes = number(1, 64);
    if (bytes > message_bytes_max)
      arguments::refuse("a message has 1 to " + std::to_string(message_bytes_max) + " bytes");
    const std::size_t usual = streams() ? std::max<std::size_t>((1U << 31) / bytes, 1000)
                              : waits == waiting::looks ? 200'000
                                                        : 10'000;
    count = number(2, std::min<std::size_t>(usual, 4'000'000));
  }

  bool streams() const { return mode.ends_with("stream"); }
  bool tells_half_round_trips() const { return mode == "latency" || mode == "adaptive"; }
};

// One wait. Who looks first does so for about as long as a sleeper takes to wake: then it never
// takes more than twice as long as the better of the two.
class wait_limit {
 public:
  static constexpr double most_s = 50e-6;

  explicit wait_limit(waiting how) : how_(how) {}
  // Before each look: whether it may come back with nothing, for another look. Otherwise it sleeps.
  bool lasts() {
    if (how_ != waiting::looks_first) return how_ == waiting::looks;
    // The clock takes as long as a look into memory, or longer.
    if (looks_++ % 16 != 0) return true;
    const double now = seconds_now();
    if (looks_ == 1) ends_ = now + most_s;
    return now < ends_;
  }

 private:
  const waiting how_;
  unsigned looks_ = 0;
  double ends_ = 0;
};

inline void pin(unsigned core) {
  cpu_set_t allowed;
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  for (unsigned n = 0, seen = 0; n < CPU_SETSIZE; ++n) {
    if (!CPU_ISSET(n, &allowed) || seen++ != core) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(n, &one);
    ::sched_setaffinity(0, sizeof one, &one);
    return;
  }
}

// Runs `parent` here and `child` in a process of its own; the child's end is waited for.
template <class Parent, class Child>
void run_pair(bool on_one_core, Parent&& parent, Child&& child) {
  const pid_t id = ::fork();
  if (id < 0) arguments::refuse("cannot start a second process");
  if (id == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    pin(on_one_core ? 0 : 1);
    child();
    ::_exit(0);
  }
  pin(0);
  parent();
  int status = 0;
  ::waitpid(id, &status, 0);
  if (status != 0) arguments::refuse("the second process failed");
}

// Seconds for `count` times what step() does. Timed in short stretches, of which the median counts:
// whatever else the machine does falls into a few of them.
template <class Step>
double seconds_for(std::size_t count, Step&& step) {
  constexpr std::size_t stretches = 200;
  const std::size_t each = std::max<std::size_t>(count / stretches, 1);
  std::vector<double> took;
  for (std::size_t done = 0; done < count;) {
    const std::size_t n = std::min(each, count - done);
    const double s = seconds_of([&] {
      for (std::size_t i = 0; i < n; ++i) step();
    });
    if (n == each) took.push_back(s / static_cast<double>(n));
    done += n;
  }
  const auto middle = took.begin() + static_cast<std::ptrdiff_t>(took.size() / 2);
  std::nth_element(took.begin(), middle, took.end());
  return *middle * static_cast<double>(count);
}

// Way: begin(exchange) in its process, send() and receive() one message, end().
template <class Way>
double measure_pair(const exchange& e, Way& first, Way& second) {
  double seconds = 0;
  run_pair(
      e.mode == "one-core",
      [&] {
        first.begin(e);
        if (e.streams()) {
          // As a whole: what has piled up is received faster than it can be sent.
          seconds = seconds_of([&] {
            for (std::size_t i = 0; i < e.count; ++i) first.receive();
          });
          first.send();  // all of it is here
        } else {
          for (std::size_t i = 0; i < e.count / 10; ++i) first.send(), first.receive();
          seconds = seconds_for(e.count, [&] { first.send(), first.receive(); });
        }
        first.end();
      },
      [&] {
        second.begin(e);
        if (e.streams()) {
          for (std::size_t i = 0; i < e.count; ++i) second.send();
          second.receive();
        } else {
          for (std::size_t i = 0; i < e.count + e.count / 10; ++i) second.receive(), second.send();
        }
        second.end();
      });
  return e.tells_half_round_trips() ? seconds / 2 : seconds;
}

inline int print_exchange(const char* implementation, const exchange& e, double seconds) {
  return print("messages", implementation, e.mode + " " + std::to_string(e.bytes), 2, seconds,
               static_cast<double>(e.count), true);
}

}  // namespace bench
