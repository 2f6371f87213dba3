// SPDX-License-Identifier: Apache-2.0
#include "sched/registry.hpp"

#include <atomic>
#include <mutex>
#include <vector>

#include "sched/bound_cpus.hpp"
#include "sched/worker_numbers.hpp"

namespace strata::detail {
namespace {

// Never destroyed: a runtime may be a static object, too.
struct all_runtimes {
  std::mutex mutex;
  std::vector<scheduler*> list;
  all_runtimes* forgotten = nullptr;  // what was before a fork, for those who look for leaks
};
std::atomic<all_runtimes*>& current() {
  static std::atomic<all_runtimes*> one{new all_runtimes};
  return one;
}
all_runtimes& all() { return *current().load(std::memory_order_acquire); }

}  // namespace

void enter_registry(scheduler& s) {
  const std::lock_guard lock(all().mutex);
  all().list.push_back(&s);
}

void leave_registry(scheduler& s) {
  const std::lock_guard lock(all().mutex);
  std::erase(all().list, &s);
}

void forget_runtimes() {
  // Its lock may be held by a thread that is no more.
  auto* const none = new all_runtimes;
  none->forgotten = &all();
  current().store(none, std::memory_order_release);
  forget_bound_cpus();
  forget_worker_numbers();
}

void for_each_runtime(const std::function<void(scheduler&)>& look) {
  const std::lock_guard lock(all().mutex);
  for (scheduler* const s : all().list) look(*s);
}

}  // namespace strata::detail
