// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace strata::launcher {

// The absolute path of the program that a shell would run for `name`: a path, or a name to be found
// along PATH. Throws user_error when there is none, or when it cannot be executed.
std::string find_program(const std::string& name);

// The file of this launcher, by the name that it had when note_own_path() was called first: a newer
// one may take its place while a job runs. Throws error.
std::string own_path();
void note_own_path();

}  // namespace strata::launcher
