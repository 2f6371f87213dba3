// SPDX-License-Identifier: Apache-2.0
// Replaces operator new, for all that is linked with it.
#include "bounded_new.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace strata::test {
namespace {

thread_local std::size_t bytes_max = SIZE_MAX;
thread_local std::size_t most_bytes = 0;

}  // namespace

bounded_new::bounded_new(std::size_t bytes) noexcept {
  bytes_max = bytes;
  most_bytes = 0;
}
bounded_new::~bounded_new() { bytes_max = SIZE_MAX; }

std::size_t bounded_new::most() noexcept { return most_bytes; }

void* get_memory(std::size_t bytes) {
  most_bytes = std::max(most_bytes, bytes);
  void* const p = bytes <= bytes_max ? std::malloc(std::max<std::size_t>(bytes, 1)) : nullptr;
  if (p == nullptr) throw std::bad_alloc();
  return p;
}

}  // namespace strata::test

void* operator new(std::size_t bytes) { return strata::test::get_memory(bytes); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
