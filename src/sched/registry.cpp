// SPDX-License-Identifier: Apache-2.0
#include "sched/registry.hpp"

#include <algorithm>
#include <mutex>
#include <vector>

namespace strata::detail {
namespace {

// Never destroyed: a runtime may be a static object, too.
struct all_runtimes {
  std::mutex mutex;
  std::vector<scheduler*> list;
};
all_runtimes& all() {
  static auto& one = *new all_runtimes;
  return one;
}

}  // namespace

void enter_registry(scheduler& s) {
  const std::lock_guard lock(all().mutex);
  all().list.push_back(&s);
}

void leave_registry(scheduler& s) {
  const std::lock_guard lock(all().mutex);
  std::erase(all().list, &s);
}

void for_each_runtime(const std::function<void(scheduler&)>& look) {
  const std::lock_guard lock(all().mutex);
  for (scheduler* const s : all().list) look(*s);
}

}  // namespace strata::detail
