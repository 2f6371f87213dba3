// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace strata::net::ucx {

// The network device of this machine that has this numeric address, as UCX_NET_DEVICES names it
// ("lo"). Throws strata::error when there is none.
[[nodiscard]] std::string device_of(const std::string& address);

}  // namespace strata::net::ucx
