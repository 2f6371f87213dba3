// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <system_error>

#include "strata/error.hpp"

namespace strata {

/// The operating system refused `what`: an error that says so in its words. `code` is an errno
/// value.
inline error errno_error(const std::string& what, int code) {
  return error(what + ": " + std::generic_category().message(code));
}

}  // namespace strata
