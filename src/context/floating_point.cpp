// SPDX-License-Identifier: Apache-2.0
#include "context/floating_point.hpp"

namespace strata::detail {

#if defined(__x86_64__)

// The only way to say that an exception has occurred, or not. FNSTENV masks all of them, so that
// what the former environment had pending does not come here.
void floating_point::put_x87() const noexcept {
  struct {
    std::uint16_t control, unused_0;
    std::uint16_t status, unused_1;
    std::uint16_t tags, unused_2;
    std::uint32_t instruction, code, operand, data;
  } environment;
  static_assert(sizeof environment == 28);
  asm volatile("fnstenv %0" : "=m"(environment));
  environment.control = x87_modes_;
  environment.status = static_cast<std::uint16_t>((environment.status & ~occurred) | x87_occurred_);
  asm volatile("fldenv %0" : : "m"(environment) : "memory");
}

#endif

}  // namespace strata::detail
