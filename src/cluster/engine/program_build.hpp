// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "fibers/code_modules.hpp"
#include "launch/build_id.hpp"

namespace strata::cluster {

// What all nodes of a job must have in common: the executable, and the libraries that are loaded
// now and have code that travels. Throws strata::error.
inline std::string program_build() {
  return launch::build_id(detail::modules_of_travelling_code());
}

}  // namespace strata::cluster
