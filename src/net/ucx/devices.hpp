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

// Whether UCX listens on TCP ports that the system chooses, as its variables say (UCX_TLS,
// UCX_TCP_PORT_RANGE). It then looks for a free one until there is one, however long that takes.
[[nodiscard]] bool listens_on_any_port();

}  // namespace strata::net::ucx
