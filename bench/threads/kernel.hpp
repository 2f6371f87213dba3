// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <system_error>
#include <vector>

#include "bench/common/measure.hpp"

// What blocking threads cost, written once over an engine with
//   thread, mutex, condition_variable   as the standard's
//   barrier                             made of a number; meet(barrier&) waits there
//   yield()
// Each measurement is one round that is repeated; the median round counts.
namespace bench {

template <class Engine>
class threads_kernel {
 public:
  using thread = typename Engine::thread;
  using mutex = typename Engine::mutex;
  using condition_variable = typename Engine::condition_variable;
  using barrier = typename Engine::barrier;

  struct round {
    double seconds = 0;
    double units = 0;
    bool ok = true;
  };

  // Every thread gives way to the others, again and again.
  static round yields(unsigned threads, unsigned turns) {
    std::vector<span> spans(threads);
    barrier begin(threads);
    in_threads(threads, [&](unsigned i) {
      Engine::meet(begin);
      spans[i].begin = seconds_now();
      for (unsigned t = 0; t < turns; ++t) Engine::yield();
      spans[i].end = seconds_now();
    });
    return {length(spans), double(threads) * turns};
  }

  // One at a time: the next is made when the last has ended.
  static round create_join(unsigned count) {
    unsigned ran = 0;
    const double seconds = seconds_of([&] {
      for (unsigned i = 0; i < count; ++i) {
        thread t([&ran] { ++ran; });
        t.join();
      }
    });
    return {seconds, double(count), ran == count};
  }

  // All are made, then all are joined.
  static round create_many_join(unsigned threads, unsigned times) {
    std::vector<unsigned> ran(threads);
    const double seconds = seconds_of([&] {
      for (unsigned n = 0; n < times; ++n) in_threads(threads, [&](unsigned i) { ++ran[i]; });
    });
    const bool ok = std::all_of(ran.begin(), ran.end(), [=](unsigned r) { return r == times; });
    return {seconds, double(threads) * times, ok};
  }

  // Lock, add, unlock; with one thread nobody else wants the mutex.
  static round locks(unsigned threads, unsigned turns) {
    std::vector<span> spans(threads);
    std::uint64_t sum = 0;
    mutex m;
    barrier begin(threads);
    in_threads(threads, [&](unsigned i) {
      Engine::meet(begin);
      spans[i].begin = seconds_now();
      for (unsigned t = 0; t < turns; ++t) {
        const std::lock_guard lock(m);
        sum = opaque(sum) + 1;
      }
      spans[i].end = seconds_now();
    });
    return {length(spans), double(threads) * turns, sum == std::uint64_t{threads} * turns};
  }

  // Two threads take turns; each hand-off wakes one and blocks the other.
  static round hand_offs(unsigned turns) {
    std::vector<span> spans(2);
    mutex m;
    condition_variable changed;
    unsigned turn = 0;
    barrier begin(2);
    in_threads(2, [&](unsigned i) {
      Engine::meet(begin);
      spans[i].begin = seconds_now();
      for (unsigned t = 0; t < turns; ++t) {
        std::unique_lock<mutex> lock(m);
        while (turn != i) changed.wait(lock);
        turn = 1 - i;
        changed.notify_one();
      }
      spans[i].end = seconds_now();
    });
    return {length(spans), 2.0 * turns};
  }

  static round barriers(unsigned threads, unsigned times) {
    std::vector<span> spans(threads);
    barrier meeting(threads);
    in_threads(threads, [&](unsigned i) {
      Engine::meet(meeting);
      spans[i].begin = seconds_now();
      for (unsigned t = 0; t < times; ++t) Engine::meet(meeting);
      spans[i].end = seconds_now();
    });
    return {length(spans), double(times)};
  }

  // Creates threads that block, wakes all at once when the last has blocked, joins them.
  static round blocked(unsigned threads) {
    mutex m;
    condition_variable all_here;
    condition_variable go_on;
    unsigned here = 0;
    unsigned woken = 0;
    bool go = false;
    const double start = seconds_now();
    std::vector<thread> made;
    made.reserve(threads);
    const auto wake_and_join = [&] {
      {
        const std::lock_guard lock(m);
        go = true;
      }
      go_on.notify_all();
      for (thread& t : made) t.join();
    };
    try {
      for (unsigned i = 0; i < threads; ++i) {
        made.emplace_back([&] {
          std::unique_lock<mutex> lock(m);
          if (++here == threads) all_here.notify_one();
          while (!go) go_on.wait(lock);
          ++woken;
        });
      }
    } catch (const std::exception& e) {
      wake_and_join();
      std::printf("{\"refused_after\": %zu, \"why\": \"%s\"}\n", made.size(), e.what());
      std::fflush(stdout);
      std::_Exit(refused);
    }
    {
      std::unique_lock<mutex> lock(m);
      while (here != threads) all_here.wait(lock);
    }
    wake_and_join();
    return {seconds_now() - start, double(threads), woken == threads};
  }

  static constexpr int refused = 3;  // exit code: the system makes no more threads

 private:
  struct span {
    double begin = 0;
    double end = 0;
  };
  // From the first that began to the last that ended.
  static double length(const std::vector<span>& spans) {
    double begin = spans[0].begin;
    double end = spans[0].end;
    for (const span& s : spans) {
      begin = std::min(begin, s.begin);
      end = std::max(end, s.end);
    }
    return end - begin;
  }

  template <class F>
  static void in_threads(unsigned threads, const F& work) {
    std::vector<thread> made;
    made.reserve(threads);
    for (unsigned i = 0; i < threads; ++i) made.emplace_back([&work, i] { work(i); });
    for (thread& t : made) t.join();
  }
};

// Repeats a round until a tenth of a second has gone by, at least three times; prints the median.
template <class F>
int print_median(const char* implementation, const std::string& what, unsigned workers, bool repeat,
                 F&& one_round) {
  using round = decltype(one_round());
  std::vector<round> rounds;
  if (repeat) one_round();
  bool ok = true;
  for (double spent = 0; rounds.empty() || (repeat && (rounds.size() < 3 || spent < 0.1));) {
    rounds.push_back(one_round());
    spent += rounds.back().seconds;
    ok = ok && rounds.back().ok;
  }
  const auto middle = rounds.begin() + static_cast<std::ptrdiff_t>(rounds.size() / 2);
  std::nth_element(rounds.begin(), middle, rounds.end(),
                   [](const round& a, const round& b) { return a.seconds < b.seconds; });
  return print("threads", implementation, what, workers, middle->seconds, middle->units, ok);
}

// To be called where threads of the engine can be made. `slow`: threads of the kernel, which get
// shorter rounds. The parameter is what to measure, with numbers where it says so.
template <class Engine>
int threads_main(const char* implementation, const arguments& given, bool slow) {
  using kernel = threads_kernel<Engine>;
  const std::string what = given.rest.empty() ? "" : given.rest[0];
  const unsigned scale = slow ? 1 : 20;
  const auto measured = [&](auto&& one_round, bool repeat = true) {
    return print_median(implementation, what, given.workers, repeat, one_round);
  };
  // What follows "many-" and the like.
  const auto number_after = [&](const std::string& prefix, unsigned last) -> unsigned {
    if (what.rfind(prefix, 0) != 0) return 0;
    char* end = nullptr;
    const unsigned long n = std::strtoul(what.c_str() + prefix.size(), &end, 10);
    return *end == '\0' && n <= last ? static_cast<unsigned>(n) : 0;
  };
  if (const unsigned n = number_after("yield-", 100'000)) {
    const unsigned turns = std::max(20'000 * scale / n, 10U);
    return measured([=] { return kernel::yields(n, turns); });
  }
  if (what == "create-join") return measured([=] { return kernel::create_join(1000 * scale); });
  if (const unsigned n = number_after("create-", 100'000)) {
    return measured([=] { return kernel::create_many_join(n, 10 * scale); });
  }
  if (what == "mutex-free") return measured([] { return kernel::locks(1, 200'000); });
  if (what == "mutex-contended") return measured([] { return kernel::locks(2, 1'000'000); });
  if (what == "condition") return measured([=] { return kernel::hand_offs(1000 * scale); });
  if (const unsigned n = number_after("barrier-", 100'000)) {
    return measured([=] { return kernel::barriers(n, 10 * scale); });
  }
  if (const unsigned n = number_after("many-", 1'000'000)) {
    return measured([=] { return kernel::blocked(n); }, false);
  }
  arguments::refuse(
      "the parameter is one of yield-N, create-join, create-N, mutex-free, mutex-contended, "
      "condition, barrier-N, many-N, where N is a number of threads");
}

}  // namespace bench
