// SPDX-License-Identifier: Apache-2.0
// How much of its processors this machine gets just now. On each one that this process may use, all
// at once, a thread runs independent instructions, as many at a time as there are units for them:
// while another guest uses the other hardware thread of a core they take up to twice as long.
// Prints a line for each processor: its number, and the nanoseconds of a round of them.
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <thread>
#include <vector>

#include "bench/common/measure.hpp"

namespace {

constexpr unsigned rounds = 400'000;
constexpr unsigned times = 5;

double nanoseconds_of_a_round() {
  std::uint64_t a = 1, b = 2, c = 3, d = 4, e = 5, f = 6;
  const double began = bench::seconds_now();
  for (std::uint64_t i = 0; i < rounds; ++i) {
    a += i;
    b ^= i;
    c += 3;
    d ^= a & 7;
    e += 5;
    f ^= 9;
    asm volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f));
  }
  return (bench::seconds_now() - began) / rounds * 1e9;
}

double median_on(int processor, std::atomic<unsigned>& missing) {
  cpu_set_t here;
  CPU_ZERO(&here);
  CPU_SET(processor, &here);
  (void)pthread_setaffinity_np(pthread_self(), sizeof here, &here);
  missing.fetch_sub(1, std::memory_order_relaxed);
  while (missing.load(std::memory_order_relaxed) != 0) {
  }
  std::array<double, times> took;
  for (double& t : took) t = nanoseconds_of_a_round();
  std::sort(took.begin(), took.end());
  return took[times / 2];
}

}  // namespace

int main() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) {
    std::fprintf(stderr, "cores_share: cannot tell the processors\n");
    return 1;
  }
  std::vector<int> processors;
  for (int p = 0; p < CPU_SETSIZE; ++p) {
    if (CPU_ISSET(p, &allowed)) processors.push_back(p);
  }
  std::vector<double> took(processors.size());
  std::atomic<unsigned> missing{static_cast<unsigned>(processors.size())};
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < processors.size(); ++i)
    threads.emplace_back([&, i] { took[i] = median_on(processors[i], missing); });
  for (std::thread& t : threads) t.join();
  for (std::size_t i = 0; i < took.size(); ++i) std::printf("%d %.4f\n", processors[i], took[i]);
}
