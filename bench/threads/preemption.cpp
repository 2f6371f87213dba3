// SPDX-License-Identifier: Apache-2.0
// What ticks of preemption cost threads that compute. The parameter is the interval in
// microseconds. Two threads on one worker, so that each tick has one give way to the other, do the
// same work preemptible and not, in rounds of some ticks that alternate there and back: the median
// of the ratios counts, in time of processors, which leaves out what other programs take and has
// the ticker's thread in it. And two threads look at the clock all the time: what passes between
// the last look of one and the first look of the other is one tick, signal and switch and all.
// The computation is the program's own code, since ticks take no effect elsewhere.
#include <time.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <strata/thread.hpp>
#include <vector>

#include "bench/common/strata.hpp"
#include "os/clock.hpp"

namespace {

constexpr unsigned threads = 2;
constexpr double round_s_min = 0.01;
constexpr unsigned ticks_in_a_round = 10;
constexpr unsigned pairs_min = 15;
constexpr double all_rounds_s = 1.5;
constexpr std::size_t gaps_max = 2000;
constexpr double gaps_s = 1.0;

// A chain of multiplications and additions.
std::uint64_t compute(std::uint64_t steps) {
  std::uint64_t x = bench::opaque(std::uint64_t{1});
  for (std::uint64_t i = 0; i < steps; ++i) x = x * 6364136223846793005U + 1442695040888963407U;
  return bench::opaque(x);
}

template <class F>
void in_threads(bool preemptible, const F& work) {
  strata::thread_attributes attributes;
  attributes.preemptible = preemptible;
  std::vector<strata::thread> made;
  made.reserve(threads);
  for (unsigned i = 0; i < threads; ++i) made.emplace_back(attributes, [&work, i] { work(i); });
  for (strata::thread& t : made) t.join();
}

double processor_seconds() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return double(t.tv_sec) + double(t.tv_nsec) / 1e9;
}

// What both take of processors, seconds; false in `ok` for a wrong result.
double one_round(bool preemptible, std::uint64_t steps, bool& ok) {
  std::vector<std::uint64_t> results(threads);
  const double began = processor_seconds();
  in_threads(preemptible, [&](unsigned i) { results[i] = compute(steps); });
  const double seconds = processor_seconds() - began;
  const std::uint64_t expected = compute(steps);
  ok = ok && std::all_of(results.begin(), results.end(), [=](auto x) { return x == expected; });
  return seconds;
}

// What single ticks take, ns.
std::vector<double> gaps() {
  const double began_s = bench::seconds_now();
  const std::uint64_t began = strata::os::ticks();
  while (bench::seconds_now() - began_s < 0.01) {
  }
  const double ticks_per_s = double(strata::os::ticks() - began) / (bench::seconds_now() - began_s);
  const std::uint64_t until =
      strata::os::ticks() + static_cast<std::uint64_t>(ticks_per_s * gaps_s);
  // Both are on one worker, so that nothing is changed by two at once; but between any two
  // instructions of one the other may have run.
  constexpr auto relaxed = std::memory_order_relaxed;
  std::array<std::atomic<std::uint64_t>, threads> looked{};
  std::array<std::vector<double>, threads> found;
  for (auto& each : found) each.reserve(gaps_max);  // malloc() would not be interrupted
  in_threads(true, [&](unsigned i) {
    std::uint64_t before = strata::os::ticks();
    for (std::uint64_t now = before; now < until && found[i].size() < gaps_max;) {
      now = strata::os::ticks();
      const std::uint64_t other = looked[1 - i].load(relaxed);
      // It has run since our last look. Unless that was just now, between our look and its.
      if (other > before && now > other) found[i].push_back(double(now - other));
      before = now;
      looked[i].store(now, relaxed);
    }
  });
  std::vector<double> ns;
  for (const auto& each : found) {
    for (const double ticks : each) ns.push_back(ticks / ticks_per_s * 1e9);
  }
  return ns;
}

int measure(const strata::runtime& runtime, unsigned interval_us) {
  constexpr std::uint64_t trial = 10'000'000;
  const double trial_began = processor_seconds();
  compute(trial);
  const double step_s = (processor_seconds() - trial_began) / double(trial);
  // A worker is interrupted when nothing has changed on it from one tick to the next: every second
  // time.
  const double round_s = std::max(round_s_min, 2 * ticks_in_a_round * interval_us / 1e6);
  const auto steps = static_cast<std::uint64_t>(round_s / threads / step_s);
  std::vector<double> plain;
  std::vector<double> ticking;
  std::vector<double> ratios;
  bool ok = true;
  const double began = bench::seconds_now();
  while (plain.size() < pairs_min || bench::seconds_now() - began < all_rounds_s) {
    const bool first = plain.size() % 2 == 0;
    for (const bool preemptible : {first, !first})
      (preemptible ? ticking : plain).push_back(one_round(preemptible, steps, ok));
    ratios.push_back(ticking.back() / plain.back());
  }
  const std::uint64_t in_rounds = runtime.stats().total().preemptions;
  const std::vector<double> each_ns = gaps();
  ok = ok && in_rounds > 0 && !each_ns.empty();
  std::printf(
      "{\"kernel\": \"threads\", \"impl\": \"preemption\", \"parameter\": \"%u\", \"workers\": 1, "
      "\"seconds\": %.9f, \"units\": 1, \"plain_seconds\": %.9f, \"ticks\": %.1f, \"ratio\": %.4f, "
      "\"ns_per_tick\": %.0f, \"peak_mb\": %.1f, \"ok\": %s}\n",
      interval_us, bench::median(ticking), bench::median(plain),
      double(in_rounds) / double(ticking.size()), bench::median(ratios), bench::median(each_ns),
      bench::peak_mb(), ok ? "true" : "false");
  return ok ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  strata::options options = strata::options::parse(argc, argv);
  const bench::arguments given(argc, argv);
  if (given.workers != 1) bench::arguments::refuse("--workers: ticks are measured on one worker");
  options.workers = 1;
  options.preempt_us = given.number(1000, 100, 10'000'000);
  strata::runtime runtime(options);
  return runtime.run([&] { return measure(runtime, options.preempt_us); });
}
