// SPDX-License-Identifier: Apache-2.0
// What the libraries below the transport over UCX should do unless the user has said otherwise.
#pragma once
#include <array>
#include <cstdlib>
#include <utility>

namespace strata::launch {

// UCX would write its log between the program's results, say itself, in many lines, that a node is
// lost, and take over the signals by which we notice that a stack has overflowed.
inline constexpr std::array ucx_variables{std::pair{"UCX_LOG_FILE", "stderr"},
                                          std::pair{"UCX_LOG_LEVEL", "fatal"},
                                          std::pair{"UCX_HANDLE_ERRORS", "none"}};

// For this process, before it loads UCX.
inline void set_ucx_variables() {
  for (const auto& [name, value] : ucx_variables) ::setenv(name, value, 0);
}

}  // namespace strata::launch
