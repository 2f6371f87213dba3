// SPDX-License-Identifier: Apache-2.0
#include "sched/bound_cpus.hpp"

#include <atomic>
#include <mutex>

namespace strata::detail {
namespace {

// Never destroyed: a runtime may be a static object, too.
struct all_bound {
  std::mutex mutex;
  std::vector<unsigned> workers;   // index: CPU
  all_bound* forgotten = nullptr;  // what was before a fork, for those who look for leaks
};
std::atomic<all_bound*>& current() {
  static std::atomic<all_bound*> one{new all_bound};
  return one;
}
all_bound& all() { return *current().load(std::memory_order_acquire); }

}  // namespace

bound_cpus::bound_cpus(std::span<const int> may, unsigned count) : cpus_(may.begin(), may.end()) {
  all_bound& bound = all();
  const std::lock_guard lock(bound.mutex);
  for (const int cpu : may) {
    if (bound.workers.size() <= static_cast<std::size_t>(cpu))
      bound.workers.resize(static_cast<std::size_t>(cpu) + 1);
  }
  const auto bound_to = [&](int cpu) -> unsigned& {
    return bound.workers[static_cast<std::size_t>(cpu)];
  };
  if (count < may.size()) {
    std::erase_if(cpus_, [&](int cpu) { return bound_to(cpu) != 0; });
    cpus_.resize(cpus_.size() >= count ? count : 0);
  }
  for (const int cpu : cpus_) ++bound_to(cpu);
}

bound_cpus::~bound_cpus() {
  if (cpus_.empty()) return;
  all_bound& bound = all();
  const std::lock_guard lock(bound.mutex);
  for (const int cpu : cpus_) --bound.workers[static_cast<std::size_t>(cpu)];
}

void forget_bound_cpus() {
  // Its lock may be held by a thread that is no more.
  auto* const none = new all_bound;
  none->forgotten = &all();
  current().store(none, std::memory_order_release);
}

}  // namespace strata::detail
