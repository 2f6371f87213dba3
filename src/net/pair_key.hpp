// SPDX-License-Identifier: Apache-2.0
// Secrets that only the nodes of a job can make: HMAC-SHA-256, under the job's key, of a purpose,
// the job, the version of the wire, who speaks to whom, and what they add.
#pragma once
#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "launch/address.hpp"
#include "net/wire.hpp"

namespace strata::net {

using pair_key = std::array<std::uint8_t, 32>;

// purpose: one of its own for each use, so that what is said for one is of no use for another; see
// also tcp/handshake.cpp. more: of sizes that the purpose fixes.
[[nodiscard]] pair_key make_pair_key(const launch::job_key& key, const std::string& purpose,
                                     std::uint64_t job, node_id source, node_id destination,
                                     std::initializer_list<std::string> more = {});

}  // namespace strata::net
