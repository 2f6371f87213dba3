// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "bench/common/measure.hpp"

// Table 2 of the Lesser Bear paper: a program changes from one thread to many, and the workers
// share them out. The paper gives the time without saying when it ends, so three ends are taken:
//   begun   every thread has run for the first time
//   equal   then every worker holds the same number of threads, give or take a sixteenth of all
//           (a thread belongs to the worker that ran it last). Meanwhile the threads compute for a
//           microsecond and give way, over and over. Some policies never come to that, because
//           nobody lacks work: after 50 ms it counts as "never".
//   excess  each thread computes for 20 microseconds and ends; what creating and joining all of
//           them takes beyond threads * 20 / workers. This is what a program feels.
//
// An engine has the types and functions
//   thread    as std::thread
//   yield()
//   place()   the number of the worker, from 0, that runs the caller
namespace bench {

// Computes for so long if nobody interrupts: counted in steps, not by the clock, since the clock
// goes on while others run.
class busy_work {
 public:
  busy_work() {
    for (int i = 0; i < 5; ++i) {
      const double seconds = seconds_of([] { steps(200'000); });
      per_microsecond_ = std::max(per_microsecond_, 200'000 / seconds * 1e-6);
    }
  }
  void microseconds(double n) const { steps(static_cast<std::uint64_t>(n * per_microsecond_)); }

 private:
  static void steps(std::uint64_t n) {
    std::uint64_t x = opaque(std::uint64_t{1});
    for (; n != 0; --n) x = opaque(x * 0x9E3779B97F4A7C15 + 1);
  }
  double per_microsecond_ = 0;
};

inline constexpr double grain_us = 20;
inline constexpr double patience_seconds = 0.05;

// Where the threads are. Every thread reports when it finds itself on another worker.
class whereabouts {
 public:
  whereabouts(unsigned threads, unsigned workers)
      : threads_(threads),
        tolerance_(static_cast<int>(std::max(2U, threads / 16))),
        held_(workers),
        start_(seconds_now()) {}

  void begin(unsigned place) {
    held_[place].threads.fetch_add(1);
    held_[place].began.fetch_add(1, std::memory_order_relaxed);
    if (begun_.fetch_add(1) + 1 < threads_) return;
    begun_seconds_ = seconds_now() - start_;
    all_begun_.store(true);
    look();
  }

  void move(unsigned from, unsigned to) {
    held_[from].threads.fetch_sub(1);
    held_[to].threads.fetch_add(1);
    moved_.fetch_add(1, std::memory_order_relaxed);
    look();
  }

  // False when it is time to end.
  bool go_on() {
    if (!ended_.load(std::memory_order_relaxed) && seconds_now() - start_ > patience_seconds &&
        all_begun_.load()) {
      ended_.store(true);
    }
    return !ended_.load(std::memory_order_relaxed);
  }

  // To be asked when all threads have ended.
  double begun_seconds() const { return begun_seconds_; }
  double equal_seconds() const { return equal_seconds_.load(); }  // negative: never
  unsigned began_on(unsigned place) const { return held_[place].began.load(); }
  unsigned long moved() const { return moved_.load(); }

 private:
  // A thread that moves is for a moment nowhere, so the sum is looked at, too.
  void look() {
    if (!all_begun_.load() || ended_.load()) return;
    int sum = 0;
    int least = static_cast<int>(threads_);
    int most = 0;
    for (const holder& h : held_) {
      const int n = h.threads.load();
      sum += n;
      least = std::min(least, n);
      most = std::max(most, n);
    }
    if (sum != static_cast<int>(threads_) || most - least > tolerance_) return;
    double never = -1;
    equal_seconds_.compare_exchange_strong(never, seconds_now() - start_);
    ended_.store(true);
  }

  struct alignas(64) holder {
    std::atomic<int> threads{0};
    std::atomic<unsigned> began{0};
  };
  const unsigned threads_;
  const int tolerance_;
  std::vector<holder> held_;
  const double start_;
  std::atomic<unsigned> begun_{0};
  std::atomic<bool> all_begun_{false};
  std::atomic<bool> ended_{false};
  std::atomic<unsigned long> moved_{0};
  double begun_seconds_ = 0;
  std::atomic<double> equal_seconds_{-1};
};

template <class Engine>
class distribution {
 public:
  distribution(unsigned threads, unsigned workers) : threads_(threads), workers_(workers) {}

  // One line of JSON: the rounds' times in microseconds, -1 for never.
  int print(const char* implementation, unsigned rounds) {
    share_out();
    excess_us();
    std::vector<double> begun;
    std::vector<double> equal;
    std::vector<double> elsewhere;
    std::vector<double> moved;
    std::vector<double> excess;
    for (unsigned i = 0; i < rounds; ++i) {
      const round r = share_out();
      begun.push_back(r.begun_us);
      equal.push_back(r.equal_us);
      elsewhere.push_back(r.began_elsewhere);
      moved.push_back(static_cast<double>(r.moved));
      excess.push_back(excess_us());
    }
    std::printf("{\"impl\": \"%s\", \"threads\": %u, \"workers\": %u", implementation, threads_,
                workers_);
    print_list("begun_us", begun);
    print_list("equal_us", equal);
    print_list("began_elsewhere", elsewhere);
    print_list("moved", moved);
    print_list("excess_us", excess);
    std::printf("}\n");
    return 0;
  }

 private:
  struct round {
    double begun_us;
    double equal_us;         // negative: never
    double began_elsewhere;  // part of the threads that did not begin where they were made
    unsigned long moved;
  };

  static void print_list(const char* name, const std::vector<double>& values) {
    std::printf(", \"%s\": [", name);
    for (std::size_t i = 0; i < values.size(); ++i) {
      std::printf("%s%.3f", i == 0 ? "" : ", ", values[i]);
    }
    std::printf("]");
  }

  template <class F>
  void in_threads(const F& body) {
    std::vector<typename Engine::thread> made;
    made.reserve(threads_);
    for (unsigned i = 0; i < threads_; ++i) made.emplace_back([&body] { body(); });
    for (auto& t : made) t.join();
  }

  round share_out() {
    const unsigned home = Engine::place();
    whereabouts where(threads_, workers_);
    in_threads([&] {
      unsigned at = Engine::place();
      where.begin(at);
      while (where.go_on()) {
        work_.microseconds(1);
        Engine::yield();
        const unsigned now = Engine::place();
        if (now != at) where.move(at, now);
        at = now;
      }
    });
    return {where.begun_seconds() * 1e6,
            where.equal_seconds() < 0 ? -1 : where.equal_seconds() * 1e6,
            1 - double(where.began_on(home)) / threads_, where.moved()};
  }

  double excess_us() {
    const double seconds = seconds_of([&] { in_threads([&] { work_.microseconds(grain_us); }); });
    return seconds * 1e6 - grain_us * threads_ / workers_;
  }

  const unsigned threads_;
  const unsigned workers_;
  const busy_work work_;
};

template <class Engine>
int distribution_main(const char* implementation, const arguments& given) {
  const unsigned threads = given.number(256, 1, 1 << 17);
  return distribution<Engine>(threads, given.workers).print(implementation, 5);
}

}  // namespace bench
