// SPDX-License-Identifier: Apache-2.0
// By what a node knows that a message comes from a node of its job. UCX accepts whoever reaches its
// ports, so each message carries a number that only those who know the job's key can make
// (pair_key.hpp), cut to 64 bits.
//
// What this gives: a stranger's messages are dropped before a byte of them is believed. What it
// does not give: UCX neither encrypts nor authenticates, so who can read packets between two nodes
// can learn the number, and its own protocol below the messages is open to who reaches its ports.
#pragma once
#include <cstdint>

#include "launch/address.hpp"
#include "net/wire.hpp"

namespace strata::net::ucx {

[[nodiscard]] std::uint64_t pass_of(const launch::job_key& key, std::uint64_t job, node_id source,
                                    node_id destination);

}  // namespace strata::net::ucx
