// SPDX-License-Identifier: Apache-2.0
// `strata jobs`, `strata join` and `strata leave`: the open jobs of this user, and what may be
// asked of their launchers. Each returns the exit status, and throws user_error and error.
#pragma once

namespace strata::launcher {

int run_jobs(int argc, char** argv);
int run_join(int argc, char** argv);
int run_leave(int argc, char** argv);

}  // namespace strata::launcher
