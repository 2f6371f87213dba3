// SPDX-License-Identifier: Apache-2.0
#include "context/exceptions.hpp"

#include <cxxabi.h>

#include <cstring>

namespace strata::detail {

[[gnu::noinline]] exceptions_in_flight* exceptions_here() noexcept {
  return reinterpret_cast<exceptions_in_flight*>(abi::__cxa_get_globals());
}

// Neither function may be inlined: the library declares __cxa_get_globals() const, so within one
// function a compiler calls it once and uses that thread's address even after a switch of stacks
// has changed the thread.
[[gnu::noinline]] exceptions_in_flight take_exceptions() noexcept {
  exceptions_in_flight mine;
  auto* const globals = abi::__cxa_get_globals();
  std::memcpy(static_cast<void*>(&mine), globals, sizeof mine);
  std::memset(static_cast<void*>(globals), 0, sizeof mine);
  return mine;
}

[[gnu::noinline]] void put_exceptions(const exceptions_in_flight& those) noexcept {
  std::memcpy(static_cast<void*>(abi::__cxa_get_globals()), &those, sizeof those);
}

}  // namespace strata::detail
