// SPDX-License-Identifier: Apache-2.0
// By what a node knows that a message comes from a node of its job. UCX accepts whoever reaches its
// ports, so each message carries a number that only those who know the job's key can make: an
// HMAC-SHA-256 of job, source and destination, cut to 64 bits.
//
// What this gives: a stranger's messages are dropped before a byte of them is believed. What it
// does not give: UCX neither encrypts nor authenticates, so who can read packets between two nodes
// can learn the number, and its own protocol below the messages is open to who reaches its ports.
#pragma once
#include <array>
#include <cstdint>

#include "net/wire.hpp"

namespace strata::net::ucx {

using job_key = std::array<std::uint8_t, 32>;

[[nodiscard]] std::uint64_t pass_of(const job_key& key, std::uint64_t job, node_id source,
                                    node_id destination);

}  // namespace strata::net::ucx
