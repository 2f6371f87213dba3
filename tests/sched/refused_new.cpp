// SPDX-License-Identifier: Apache-2.0
// Replaces operator new, for all that is linked with it.
#include "refused_new.hpp"

#include <algorithm>
#include <cstdlib>
#include <new>

namespace strata::test {
namespace {

thread_local std::size_t bytes_refused = 0;

}  // namespace

refused_new::refused_new(std::size_t bytes) noexcept { bytes_refused = bytes; }
refused_new::~refused_new() { bytes_refused = 0; }

void* memory_unless_refused(std::size_t bytes) {
  void* const p = bytes > bytes_refused || bytes_refused == 0
                      ? std::malloc(std::max<std::size_t>(bytes, 1))
                      : nullptr;
  if (p == nullptr) throw std::bad_alloc();
  return p;
}

}  // namespace strata::test

void* operator new(std::size_t bytes) { return strata::test::memory_unless_refused(bytes); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
