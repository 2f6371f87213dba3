// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "apps/common/program.hpp"
#include "apps/radixsort/idle_meter.hpp"
#include "apps/radixsort/keys.hpp"
#include "apps/radixsort/nptl.hpp"
#include "apps/radixsort/passes.hpp"
#include "apps/radixsort/repeat.hpp"
#include "apps/radixsort/request.hpp"
#include "apps/radixsort/sort.hpp"
#include "apps/radixsort/strata.hpp"

namespace {

using radixsort::request;

// One radix, sorted as often as was asked for.
struct outcome : radixsort::repeated {
  unsigned radix_bits = 0;
};

// All that is done where threads of the engine can be made.
struct report {
  std::vector<outcome> outcomes;
  double drawing_seconds = 0;
  double seconds = 0;                   // sum of the medians
  std::vector<double> idle_drawing_ms;  // of each worker
  std::vector<double> idle_sorting_ms;
};

using seconds_clock = std::chrono::steady_clock;
double seconds_since(seconds_clock::time_point start) {
  return std::chrono::duration<double>(seconds_clock::now() - start).count();
}

void sort_once(const request& r, radixsort::passes& work) {
  using namespace radixsort;
  if (r.engine == "strata") {
    return r.sync == "fork" ? sort_by_fork<strata_threads>(work)
                            : sort_by_barrier<strata_threads>(work);
  }
  return r.sync == "fork" ? sort_by_fork<nptl>(work) : sort_by_barrier<nptl>(work);
}

outcome sort_with(const request& r, unsigned radix_bits, const std::vector<radixsort::key>& drawn,
                  std::vector<radixsort::key>& keys, std::vector<radixsort::key>& other,
                  const radixsort::summary& wanted, radixsort::idle_meter& idle) {
  const auto timed = [&](radixsort::passes& work) {
    idle.start();
    const auto start = seconds_clock::now();
    sort_once(r, work);
    const double seconds = seconds_since(start);
    idle.stop();
    return seconds;
  };
  return {
      radixsort::repeat(r.repetitions, drawn, keys, other, r.threads, radix_bits, wanted, timed),
      radix_bits};
}

report sort_all(const request& r, const radixsort::summary& wanted,
                const strata::runtime* runtime) {
  report all;
  radixsort::idle_meter drawing(runtime);
  radixsort::idle_meter sorting(runtime);
  drawing.start();
  const auto start = seconds_clock::now();
  const std::vector<radixsort::key> drawn = radixsort::draw_keys(r.keys_log2);
  all.drawing_seconds = seconds_since(start);
  drawing.stop();
  // Written once before the clock starts, so that no time goes into finding pages for them.
  std::vector<radixsort::key> keys(drawn.size());
  std::vector<radixsort::key> other(drawn.size());
  for (unsigned bits = r.radix_bits_first; bits <= r.radix_bits_last; ++bits) {
    all.outcomes.push_back(sort_with(r, bits, drawn, keys, other, wanted, sorting));
    all.seconds += all.outcomes.back().seconds;
  }
  all.idle_drawing_ms = drawing.milliseconds();
  all.idle_sorting_ms = sorting.milliseconds();
  return all;
}

nlohmann::json to_json(const request& r, const outcome& o) {
  const unsigned passes = radixsort::passes::number_for(o.radix_bits);
  char hash[17];
  std::snprintf(hash, sizeof hash, "%016" PRIx64, o.found.fnv1a64);
  nlohmann::json j = {
      {"radix_bits", o.radix_bits}, {"passes", passes}, {"seconds", o.seconds},
      {"sum", o.found.sum},         {"fnv1a64", hash},  {"ordered", o.found.ordered}};
  if (r.sync == "fork") {
    j["threads_created"] = std::uint64_t{2} * passes * r.threads;
  } else {
    j["barriers"] = 2 * passes;
  }
  return j;
}

void print(const request& r, const outcome& o) {
  const unsigned passes = radixsort::passes::number_for(o.radix_bits);
  std::printf("radix 2^%-2u  %2u passes, ", o.radix_bits, passes);
  if (r.sync == "fork") {
    std::printf("%u x %u threads created", 2 * passes, r.threads);
  } else {
    std::printf("%u barriers of %u threads", 2 * passes, r.threads);
  }
  std::printf("  %.3f ms\n", o.seconds * 1e3);
}

// The threads of the kernel need no runtime, except to take this process's place in a job.
report run(apps::program& p, const request& r, radixsort::truth& known) {
  const bool with_runtime = r.engine == "strata";
  std::optional<strata::runtime> runtime;
  if (with_runtime || p.in_job()) {
    p.starts_runtime();
    runtime.emplace(p.runtime_options());
  }
  // On node 0 alone, and while no other node has to wait for this one to join.
  known = radixsort::truth_of(r.keys_log2);
  unsigned workers = 0;
  report all;
  if (with_runtime) {
    workers = runtime->workers();
    all = runtime->run([&] { return sort_all(r, known.sorted, &*runtime); });
  } else {
    workers = radixsort::keep_on_processors(p.runtime_options().workers);
    radixsort::give_nptl_small_stacks();
    all = sort_all(r, known.sorted, nullptr);
  }
  p.note_run(r.engine + " threads, " + r.sync, all.seconds, workers);
  return all;
}

int body(apps::program& p) {
  const request r = radixsort::parse_request(p);
  radixsort::truth known;
  report all;
  try {
    all = run(p, r, known);
  } catch (const std::system_error& e) {
    throw strata::user_error(std::string("the system refused to make ") +
                             std::to_string(r.threads) + " threads (" + e.what() +
                             "); take fewer with --threads");
  }

  std::printf("2^%u keys, %s threads\n", r.keys_log2, r.engine.c_str());
  bool ok = true;
  nlohmann::json sorts = nlohmann::json::array();
  for (const outcome& o : all.outcomes) {
    ok = ok && o.found == known.sorted;
    print(r, o);
    sorts.push_back(to_json(r, o));
  }
  nlohmann::json result = {
      {"sorts", sorts}, {"published", known.published}, {"drawing_seconds", all.drawing_seconds}};
  if (r.engine == "strata") {
    result["idle_drawing_ms"] = all.idle_drawing_ms;
    result["idle_sorting_ms"] = all.idle_sorting_ms;
  }
  return p.finish({{"keys_log2", r.keys_log2},
                   {"threads", r.threads},
                   {"radix_bits", {r.radix_bits_first, r.radix_bits_last}},
                   {"sync", r.sync},
                   {"engine", r.engine},
                   {"policy", r.engine == "strata" ? p.runtime_options().policy : "kernel"},
                   {"repeat", r.repetitions}},
                  result, ok);
}

}  // namespace

int main(int argc, char** argv) {
  return apps::run_program("radixsort",
                           "Sorts 2^N keys with blocking threads, digit by digit, as the paper "
                           "on Lesser Bear does.",
                           argc, argv, body);
}
