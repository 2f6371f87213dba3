// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace strata::net::ucx {

// The network device of this machine that has this numeric address, as UCX_NET_DEVICES names it
// ("lo"). Throws strata::error when there is none.
[[nodiscard]] std::string device_of(const std::string& address);

// The same for all that reaches the network of an interface ("ib0"): the ports behind it of devices
// that read and write memory, if there are any, and the interface itself ("mlx5_0:1,ib0").
// `interfaces`: where the system tells of them.
[[nodiscard]] std::string devices_behind(const std::string& interface,
                                         const std::string& interfaces = "/sys/class/net");

}  // namespace strata::net::ucx
