// SPDX-License-Identifier: Apache-2.0
// Replaces operator new, for all that is linked with it.
#include "refused_new.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

namespace strata::test {
namespace {

thread_local std::size_t least_refused = SIZE_MAX, most_refused = SIZE_MAX;
thread_local std::size_t most_bytes = 0;
thread_local unsigned times_refused = 0, most_times = 0;
std::atomic<long> blocks_in_use{0};

}  // namespace

refused_new::refused_new(std::size_t least, std::size_t most, unsigned times) noexcept {
  least_refused = least;
  most_refused = most;
  most_times = times;
  most_bytes = 0;
  times_refused = 0;
}
refused_new::~refused_new() { least_refused = SIZE_MAX; }

std::size_t refused_new::most_asked() noexcept { return most_bytes; }
unsigned refused_new::refused() noexcept { return times_refused; }
long refused_new::in_use() noexcept { return blocks_in_use.load(std::memory_order_relaxed); }

void* memory_unless_refused(std::size_t bytes) {
  most_bytes = std::max(most_bytes, bytes);
  const bool is_refused =
      least_refused <= bytes && bytes <= most_refused && times_refused != most_times;
  if (is_refused) ++times_refused;
  void* const p = is_refused ? nullptr : std::malloc(std::max<std::size_t>(bytes, 1));
  if (p == nullptr) throw std::bad_alloc();
  blocks_in_use.fetch_add(1, std::memory_order_relaxed);
  return p;
}

void give_memory_back(void* p) noexcept {
  if (p != nullptr) blocks_in_use.fetch_sub(1, std::memory_order_relaxed);
  std::free(p);
}

}  // namespace strata::test

void* operator new(std::size_t bytes) { return strata::test::memory_unless_refused(bytes); }
// As the standard library has it; a sanitizer has one of its own, whose blocks are not to come
// here.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return operator new(bytes);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void operator delete(void* p) noexcept { strata::test::give_memory_back(p); }
void operator delete(void* p, std::size_t) noexcept { strata::test::give_memory_back(p); }
