// SPDX-License-Identifier: Apache-2.0
// The inline switch, callable: apart, because files that have it are compiled without a red zone.
#include "context/switch.hpp"

#if defined(STRATA_SWITCH_INLINE)
extern "C" void switch_by_jump(void** from, void* to) noexcept;
[[gnu::noinline]] void switch_by_jump(void** from, void* to) noexcept {
  strata::detail::switch_context_inline(from, to);
}
#endif
