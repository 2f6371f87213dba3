// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace strata::launcher {

// The absolute path of the program that a shell would run for `name`: a path, or a name to be found
// along PATH. Throws user_error when there is none, or when it cannot be executed.
std::string find_program(const std::string& name);

// The file of this launcher.
std::string own_path();

}  // namespace strata::launcher
