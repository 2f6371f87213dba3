// SPDX-License-Identifier: Apache-2.0
// The number that STRATA_JOB_FD holds stands for a line only where it is that of a socket.
#pragma once
#include <string>

namespace strata::launch {

// The socket that the variable's text names. Throws strata::error where it names none.
int socket_named(const std::string& text);

}  // namespace strata::launch
