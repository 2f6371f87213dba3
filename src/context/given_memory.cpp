// SPDX-License-Identifier: Apache-2.0
#include "context/given_memory.hpp"

#include <cstdint>
#include <new>

#include "context/switch.hpp"

#if defined(STRATA_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(STRATA_TSAN)
#include <sanitizer/tsan_interface.h>
#endif

namespace strata::detail {
namespace {

// At the top of the memory.
struct alignas(16) visit {
  void (*f)(void*);
  void* argument;
  context outside;  // on the stack of the pool
};

// Not noexcept: see last_frame.cpp.
void begin(void* argument) {
#if defined(STRATA_ASAN)
  __sanitizer_finish_switch_fiber(nullptr, nullptr, nullptr);
#endif
  const auto& s = *static_cast<stack*>(argument);
  auto& mine = *reinterpret_cast<visit*>(static_cast<std::byte*>(s.bottom) + s.bytes);
  mine.f(mine.argument);
  context ended;
  switch_context(ended, mine.outside, true);
}

}  // namespace

void call_on_memory(stack& s, std::byte* lowest, std::size_t bytes, void (*f)(void*),
                    void* argument) {
  const std::uintptr_t end = reinterpret_cast<std::uintptr_t>(lowest) + bytes;
  const std::uintptr_t place = (end - sizeof(visit)) & ~std::uintptr_t{alignof(visit) - 1};
  auto* const mine = ::new (reinterpret_cast<void*>(place)) visit{f, argument, s};
  context there;
  there.bottom = lowest;
  there.bytes = static_cast<std::size_t>(reinterpret_cast<std::byte*>(mine) - lowest);
  there.sp = make_context(mine, &begin, &s);
#if defined(STRATA_TSAN)
  there.tsan_fiber = __tsan_create_fiber(0);
#endif
  static_cast<context&>(s) = there;
  switch_context(mine->outside, there);
  static_cast<context&>(s) = mine->outside;
#if defined(STRATA_TSAN)
  __tsan_destroy_fiber(there.tsan_fiber);
#endif
#if defined(STRATA_ASAN)
  __asan_unpoison_memory_region(lowest, bytes);  // frames that were left by a jump
#endif
}

}  // namespace strata::detail
