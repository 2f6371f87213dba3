// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <exception>

namespace mapview {

// What f() throws; null: nothing.
template <class F>
std::exception_ptr problem_of(const F& f) noexcept {
  try {
    f();
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

}  // namespace mapview
