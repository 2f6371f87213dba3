// SPDX-License-Identifier: Apache-2.0
#include "context/stack.hpp"

#include <pthread.h>

#include "context/switch.hpp"
#include "strata/detail/cpu.hpp"

#if defined(STRATA_ASAN)
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(STRATA_TSAN)
#include <sanitizer/tsan_interface.h>
#endif

namespace strata::detail {

void switch_context(context& from, context& to, [[maybe_unused]] bool from_ends) noexcept {
#if defined(STRATA_ASAN)
  void* fake_stack = nullptr;
  __sanitizer_start_switch_fiber(from_ends ? nullptr : &fake_stack, to.bottom, to.bytes);
#endif
#if defined(STRATA_TSAN)
  // Flag 0: a switch orders memory, as it does for the program.
  __tsan_switch_to_fiber(to.tsan_fiber, 0);
#endif
  strata_switch_context(&from.sp, to.sp);
#if defined(STRATA_ASAN)
  __sanitizer_finish_switch_fiber(fake_stack, nullptr, nullptr);
#endif
}

context context_of_this_thread() {
  context c;
#if defined(STRATA_ASAN)
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
    pthread_attr_getstack(&attributes, &c.bottom, &c.bytes);
    pthread_attr_destroy(&attributes);
  }
#endif
#if defined(STRATA_TSAN)
  c.tsan_fiber = __tsan_get_current_fiber();
#endif
  return c;
}

}  // namespace strata::detail
