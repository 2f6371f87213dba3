// SPDX-License-Identifier: Apache-2.0
// Where threads are made that the system may refuse.
#pragma once
#include <string>
#include <system_error>

#include "base/errno_error.hpp"

namespace strata {

/// what(), in which threads of `whose` are made: a refused one is an error that says what the user
/// can do.
template <class F>
auto with_threads(const std::string& whose, F what) {
  try {
    return what();
  } catch (const std::system_error& e) {
    if (e.code() != std::errc::resource_unavailable_try_again &&
        e.code() != std::errc::not_enough_memory)
      throw;
    throw errno_error("cannot make a thread of " + whose, e.code().value(),
                      "raise the limits of processes and of memory (ulimit -u, ulimit -v, or the "
                      "container's)");
  }
}

}  // namespace strata
