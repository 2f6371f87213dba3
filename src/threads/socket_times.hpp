// SPDX-License-Identifier: Apache-2.0
// How long a call waits for a socket, as the socket itself has been told: SO_RCVTIMEO, SO_SNDTIMEO.
#pragma once
#include <cstdint>

namespace strata::detail {

// Until when a call waits that begins to wait now, by that option of the socket: parking::never
// where it has no such time, or is no socket. errno stays as it is.
[[nodiscard]] std::int64_t own_deadline_ns(int fd, int option) noexcept;

}  // namespace strata::detail
