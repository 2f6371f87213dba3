// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <system_error>

#include "strata/error.hpp"

namespace strata {

/// The operating system refused `what`: an error that says so in its words. `code` is an errno
/// value; `remedy`: what the user can do about it, if that is known.
inline error errno_error(const std::string& what, int code, const std::string& remedy = {}) {
  return error(what + ": " + std::generic_category().message(code) +
               (remedy.empty() ? "" : "; " + remedy));
}

}  // namespace strata
