// SPDX-License-Identifier: Apache-2.0
// The exceptions in flight (caught and not yet left behind, or unwinding) belong to a stack, but
// the C++ library keeps them for the OS thread. Whoever changes stacks takes them along.
#pragma once

namespace strata::detail {

// Layout fixed by the Itanium C++ ABI, section 2.2.2.
struct exceptions_in_flight {
  void* caught = nullptr;
  unsigned int uncaught = 0;
  [[nodiscard]] bool none() const noexcept { return caught == nullptr && uncaught == 0; }
};

// Where the calling OS thread's are.
exceptions_in_flight* exceptions_here() noexcept;
// Takes the calling OS thread's exceptions away from it; it has none afterwards.
exceptions_in_flight take_exceptions() noexcept;
// Makes them the calling OS thread's, which must have none.
void put_exceptions(const exceptions_in_flight& those) noexcept;

}  // namespace strata::detail
