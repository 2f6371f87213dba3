// SPDX-License-Identifier: Apache-2.0
// Reads that may end without input. A terminal that does not wait for lines can be told that no
// byte is needed (VMIN): they end at once, or after a time, and poll() tells of neither.
#pragma once
#include <cstdint>

namespace strata::detail {

// How long a read waits for input at most: parking::never, unless fd is such a terminal. errno
// stays as it is.
[[nodiscard]] std::int64_t longest_read_ns(int fd) noexcept;

}  // namespace strata::detail
