// SPDX-License-Identifier: Apache-2.0
// What the kernel keeps for a process stays level over many starts of a runtime; an idle one costs
// no processor time.
#include <dirent.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>

#include <fstream>
#include <string>

#include "../common/fib_forks.hpp"
#include "support.hpp"

namespace strata::test {
namespace {

struct footprint {
  long threads = 0;
  long descriptors = 0;
  long mappings = 0;
  long resident_kib = 0;
};

footprint take_footprint() {
  footprint now;
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("Threads:", 0) == 0) now.threads = std::stol(line.substr(8));
    if (line.rfind("VmRSS:", 0) == 0) now.resident_kib = std::stol(line.substr(6));
  }
  if (DIR* open_files = opendir("/proc/self/fd")) {
    while (readdir(open_files) != nullptr) ++now.descriptors;
    closedir(open_files);
  }
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) ++now.mappings;
  return now;
}

TEST(leaks, none_after_many_starts) {
  const auto start_use_stop = [](unsigned workers) {
    runtime rt(with_workers(workers));
    ASSERT_EQ(rt.run([] { return fib(10); }), 55);
    rt.submit([] { fib(8); });
  };
  // The C library keeps thread stacks and heaps for later.
  for (unsigned i = 0; i < 20; ++i) start_use_stop(1 + i % 4);
  const footprint before = take_footprint();
  for (unsigned i = 0; i < scaled(200U, 60U); ++i) start_use_stop(1 + i % 4);
  const footprint after = take_footprint();
  // A thread that was joined can still be counted for a moment.
  spin_until([&] { return take_footprint().threads <= before.threads; });
  EXPECT_EQ(after.descriptors, before.descriptors);
  if (slow_build) return;  // sanitizers map as they like
  EXPECT_LE(after.mappings, before.mappings + 10);
  EXPECT_LE(after.resident_kib, before.resident_kib + 8 * 1024);
}

TEST(leaks, a_start_alone_leaves_nothing) {
  for (unsigned i = 0; i < 5; ++i) runtime{with_workers(3)};
  const footprint before = take_footprint();
  for (unsigned i = 0; i < scaled(100U, 30U); ++i) runtime{with_workers(3)};
  const footprint after = take_footprint();
  spin_until([&] { return take_footprint().threads <= before.threads; });
  EXPECT_EQ(after.descriptors, before.descriptors);
}

double cpu_seconds() {
  rusage used;
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

TEST(idle, costs_no_processor_time) {
  runtime two(with_workers(2));
  runtime many(with_workers(16));
  EXPECT_EQ(two.run([] { return fib(15); }), 610);
  EXPECT_EQ(many.run([] { return fib(15); }), 610);
  two.wait_idle();
  many.wait_idle();
  // A single worker that span would take 0.3 s each time, or half of it on a busy machine; there a
  // worker may also be slow to fall asleep, so one good measurement of a few is enough.
  // ThreadSanitizer has a thread of its own.
  double used = 1;
  for (int attempt = 0; attempt < 5 && used >= scaled(0.02, 0.06); ++attempt) {
    const double before = cpu_seconds();
    poll(nullptr, 0, 300);  // the one place where time has to pass
    used = cpu_seconds() - before;
  }
  EXPECT_LT(used, scaled(0.02, 0.06));
}

}  // namespace
}  // namespace strata::test
