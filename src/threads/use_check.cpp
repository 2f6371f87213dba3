// SPDX-License-Identifier: Apache-2.0
#include "strata/detail/use_check.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>

#include "base/spelling.hpp"
#include "sched/place.hpp"
#include "strata/detail/parking.hpp"
#include "strata/detail/thread_core.hpp"
#include "threads/name_of.hpp"
#include "threads/waiter.hpp"

namespace strata::detail {
namespace {

std::string name_of_user() {
  const worker& w = this_worker();
  if (w.owner == nullptr) return "an OS thread from outside the runtime";
  const stack* const s = static_cast<const place&>(w).current;
  if (s == nullptr || s->kind == nullptr)
    return w.running != nullptr ? "fiber \"" + std::string(plain_name(w.running())) + "\""
                                : "worker " + std::to_string(w.id);
  return name_of(*s);
}

}  // namespace

void refuse_use(const char* kind, const void* object, const char* wrong,
                const char* advice) noexcept {
  const std::string who = name_of_user();
  // One write: lines of several dying threads do not mix, and no lock of stdio is needed.
  char line[1024];
  const int length = std::snprintf(line, sizeof line, "strata: %s at %p %s, by %s: %s\n", kind,
                                   object, wrong, who.c_str(), advice);
  if (length > 0) {
    const auto bytes = std::min(static_cast<std::size_t>(length), sizeof line - 1);
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line, bytes);
  }
  std::abort();
}

void check_end(const char* kind, const void* object, bool is_held, const void* queue,
               const void* other_queue) noexcept {
  check_use(!is_held, kind, object, "is destroyed while it is held", "unlock it first");
  if constexpr (uses_are_checked) {
    const auto has_any = [](const void* q) { return q != nullptr && is_awaited(q); };
    check_use(!has_any(queue) && !has_any(other_queue), kind, object,
              "is destroyed while somebody waits for it", "join those who use it first");
  }
}

#if defined(STRATA_DEBUG_CHECKS)
std::uint32_t lock_owner::caller() noexcept {
  const std::uint64_t who = std::hash<thread::id>()(this_thread::get_id());
  const auto some = static_cast<std::uint32_t>((who >> 4) ^ (who >> 36));
  return some != 0 ? some : 1;
}
#endif

}  // namespace strata::detail
