// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "net/ucx/ucp_library.hpp"

namespace strata::net::ucx {

// Whether large active messages over this endpoint are read or written by devices (or by the
// kernel) from memory to memory, where UCX has chosen some that it trusts to let go of memory when
// a peer is lost.
[[nodiscard]] bool devices_read_memory(const ucp_library& ucp, ucp_ep_h endpoint) noexcept;

}  // namespace strata::net::ucx
