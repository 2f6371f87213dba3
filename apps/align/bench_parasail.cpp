// SPDX-License-Identifier: Apache-2.0
// Cells per second of one worker, beside parasail's striped kernel with 32-bit lanes, in
// alternating runs of one process.
//   align_bench_parasail [QUERY REF [ROUNDS]]
// Without files: a seeded pair of 48,502 x 100,000 letters. parasail's own best of its 32-bit
// striped variants on this processor is taken (its dispatcher, and AVX2 and SSE4.1 by name), so
// that the comparison favours nobody.
#include <parasail.h>
#include <parasail/cpuid.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "apps/align/driver.hpp"
#include "apps/align/sequence.hpp"

namespace {

using align::scoring;
using align::sequence;

std::string seeded(std::uint64_t seed, std::size_t length) {
  std::string out;
  for (std::size_t i = 0; i < length; ++i) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    out += "ACGT"[seed >> 62];
  }
  return out;
}

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

struct contender {
  std::string name;
  std::function<long()> run;  // returns the score
  std::vector<double> seconds;
  long score = 0;
};

void compare(const sequence& q, const sequence& r, const scoring& s, int rounds) {
  parasail_matrix_t* matrix = parasail_matrix_create("ACGT", s.match, s.mismatch);
  const auto striped = [&](parasail_function_t* f) {
    return [&q, &r, &s, matrix, f] {
      parasail_result_t* result =
          f(q.letters.c_str(), static_cast<int>(q.size()), r.letters.c_str(),
            static_cast<int>(r.size()), s.open, s.extend, matrix);
      const long score = parasail_result_get_score(result);
      parasail_result_free(result);
      return score;
    };
  };
  const auto ours = [&](const char* set, align::lane_width narrowest) {
    return [&q, &r, &s, set, narrowest] {
      align::sweep_options o;
      o.score = s;
      o.kernels = align::find_kernels(set);
      o.narrowest = narrowest;
      align::sweep sweep({q.codes}, {r.codes}, o);
      align::run_serial(sweep, nullptr);
      return static_cast<long>(sweep.best().score());
    };
  };
  std::vector<contender> all;
  all.push_back({"parasail striped 32 (dispatched)", striped(parasail_sw_striped_32), {}});
#if defined(__x86_64__)
  if (parasail_can_use_avx2())
    all.push_back({"parasail striped 32 (AVX2)", striped(parasail_sw_striped_avx2_256_32), {}});
  if (parasail_can_use_sse41())
    all.push_back({"parasail striped 32 (SSE4.1)", striped(parasail_sw_striped_sse41_128_32), {}});
#endif
  const std::size_t theirs = all.size();
  for (const char* set : {"avx512", "avx2", "baseline"}) {
    if (!align::find_kernels(set)) continue;
    all.push_back({std::string("ours ") + set + ", as narrow as exact",
                   ours(set, align::lane_width::bits8),
                   {}});
    all.push_back(
        {std::string("ours ") + set + ", 32-bit lanes", ours(set, align::lane_width::bits32), {}});
  }
  for (int round = 0; round < rounds; ++round) {
    for (contender& c : all) c.seconds.push_back(seconds_of([&] { c.score = c.run(); }));
  }
  const double cells = static_cast<double>(q.size()) * static_cast<double>(r.size());
  double best_of_theirs = 1e300;
  for (std::size_t k = 0; k < theirs; ++k)
    best_of_theirs = std::min(best_of_theirs, median(all[k].seconds));
  std::printf("%zu x %zu, match %d, mismatch %d, gaps %d/%d; medians of %d alternating runs\n",
              q.size(), r.size(), s.match, s.mismatch, s.open, s.extend, rounds);
  for (const contender& c : all) {
    const double t = median(c.seconds);
    std::printf("  %-36s %8.2f billion cells/s  %6.2f x parasail's best%s\n", c.name.c_str(),
                cells / t / 1e9, best_of_theirs / t,
                c.score == all.front().score ? "" : "  ANOTHER SCORE");
    if (c.score != all.front().score) std::exit(1);
  }
  parasail_matrix_free(matrix);
}

}  // namespace

int main(int argc, char** argv) {
  const sequence q =
      argc > 2 ? align::read_fasta(argv[1]) : align::make_sequence(seeded(1, 48'502));
  const sequence r =
      argc > 2 ? align::read_fasta(argv[2]) : align::make_sequence(seeded(2, 100'000));
  const int rounds = argc > 3 ? std::max(1, std::atoi(argv[3])) : 5;
  compare(q, r, {1, -1, 2, 2}, rounds);
  compare(q, r, {2, -3, 5, 2}, rounds);
}
