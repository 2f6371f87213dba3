// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <exception>
#include <string>

#include "net/wire.hpp"

namespace strata::cluster {

// An exception in words that mean something on another node: "std::runtime_error on node 3: no such
// city". At most 4,000 bytes, so that it fits into a message.
std::string describe_failure(const std::exception_ptr& error, net::node_id node);

}  // namespace strata::cluster
