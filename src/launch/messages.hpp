// SPDX-License-Identifier: Apache-2.0
// The messages between launcher and node: their frames, packed and unpacked. Both ends use these
// functions. Every unpack_ takes a payload and throws strata::error unless it is exactly right.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "launch/frame.hpp"
#include "launch/job.hpp"

namespace strata::launch {

struct reachable_message {
  std::string build_id;
  address where;
};

struct lost_message {
  node_id node = 0;
  std::string why;
};

std::string pack_welcome(const job_description& job);
job_description unpack_welcome(std::string_view payload);

std::string pack_reachable(const reachable_message& message);
reachable_message unpack_reachable(std::string_view payload);

std::string pack_directory(const std::vector<address>& everybody);
std::vector<address> unpack_directory(std::string_view payload);

std::string pack_lost(const lost_message& message);
lost_message unpack_lost(std::string_view payload);

std::string pack_finished();

// Parts of the welcome that also travel to agents.
void write_job(payload_writer& out, const job_description& job);
job_description read_job(payload_reader& in);

}  // namespace strata::launch
