// SPDX-License-Identifier: Apache-2.0
// The affinity mask, and the number of workers that follows from it. Plain system calls: on Linux
// hwloc's own binding is this very call, and needs a loaded topology.
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>

#include "base/errno_error.hpp"
#include "os/quota.hpp"
#include "os/topology.hpp"
#include "os/unbound.hpp"

namespace strata::os {

namespace {

// A cpu_set_t of fixed size ends at 1,024 CPUs; larger machines exist.
class cpu_mask {
 public:
  explicit cpu_mask(int cpus) : cpus_(cpus), set_(CPU_ALLOC(static_cast<std::size_t>(cpus))) {
    if (set_ != nullptr) CPU_ZERO_S(bytes(), set_);
  }
  ~cpu_mask() {
    if (set_ != nullptr) CPU_FREE(set_);
  }
  cpu_mask(const cpu_mask&) = delete;
  cpu_mask& operator=(const cpu_mask&) = delete;

  [[nodiscard]] std::size_t bytes() const {
    return CPU_ALLOC_SIZE(static_cast<std::size_t>(cpus_));
  }
  [[nodiscard]] cpu_set_t* get() const { return set_; }
  void set(int cpu) { CPU_SET_S(static_cast<std::size_t>(cpu), bytes(), set_); }
  [[nodiscard]] bool test(int cpu) const {
    return CPU_ISSET_S(static_cast<std::size_t>(cpu), bytes(), set_) != 0;
  }
  [[nodiscard]] int size() const { return cpus_; }

 private:
  int cpus_;
  cpu_set_t* set_;
};

}  // namespace

std::vector<int> allowed_cpus() {
  constexpr int cpus_max = 1 << 20;
  for (int cpus = 1024;; cpus *= 2) {
    const cpu_mask mask(cpus);
    if (mask.get() == nullptr) throw errno_error("cannot read the affinity mask", ENOMEM);
    if (sched_getaffinity(0, mask.bytes(), mask.get()) != 0) {
      if (errno == EINVAL && cpus < cpus_max) continue;  // the kernel's mask is longer than ours
      throw errno_error("cannot read the affinity mask", errno);
    }
    std::vector<int> allowed;
    for (int cpu = 0; cpu < mask.size(); ++cpu) {
      if (mask.test(cpu)) allowed.push_back(cpu);
    }
    return allowed;
  }
}

bool bind_current_thread(std::span<const int> cpus) noexcept {
  if (cpus.empty()) return false;
  const auto [low, high] = std::minmax_element(cpus.begin(), cpus.end());
  if (*low < 0) return false;
  cpu_mask mask(std::max(1024, *high + 1));
  if (mask.get() == nullptr) return false;
  for (const int cpu : cpus) mask.set(cpu);
  keep_cpus_before_binding();
  return sched_setaffinity(0, mask.bytes(), mask.get()) == 0;
}

bool bind_current_thread(int cpu) noexcept { return bind_current_thread(std::span(&cpu, 1)); }

int current_cpu() noexcept { return sched_getcpu(); }

int thread_number() noexcept {
  static thread_local const int number = gettid();
  return number;
}

unsigned workers_for(std::size_t allowed, double quota_cores) noexcept {
  const double whole = std::floor(std::min(quota_cores, static_cast<double>(allowed)));
  return whole < 1 ? 1 : static_cast<unsigned>(whole);
}

std::string to_ranges(std::span<const int> cpus) {
  std::string text;
  for (std::size_t i = 0; i < cpus.size();) {
    std::size_t last = i;
    while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
    if (!text.empty()) text += ',';
    text += std::to_string(cpus[i]);
    if (last > i) text += '-' + std::to_string(cpus[last]);
    i = last + 1;
  }
  return text;
}

worker_choice choose_workers() {
  const auto allowed = allowed_cpus();
  const cpu_quota quota = read_cpu_quota();
  const unsigned workers = workers_for(allowed.size(), quota.cores);
  std::string reason = std::to_string(workers) + (workers == 1 ? " worker: " : " workers: ") +
                       (allowed.size() == 1 ? "CPU " : "CPUs ") + to_ranges(allowed);
  if (quota.source.empty()) {
    reason += ", no CPU quota";
  } else {
    char cores[32];
    std::snprintf(cores, sizeof cores, "%.3g", quota.cores);
    reason += std::string(", a CPU quota of ") + cores + " cores (" + quota.source.string() + ")";
  }
  return {workers, std::move(reason)};
}

}  // namespace strata::os
