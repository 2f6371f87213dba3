// SPDX-License-Identifier: Apache-2.0
// What `strata jobs`, `join` and `leave` say to the launcher of an open job, and what it answers.
// Every unpack_ takes a payload and throws strata::error unless it is exactly right.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "launch/frame.hpp"
#include "launch/job.hpp"
#include "tools/strata/events/shared_names.hpp"

namespace strata::launcher {

// One request fits, and nothing that costs memory.
inline constexpr std::size_t control_payload_bytes_max = 4096;

struct job_status {
  std::string program{};
  std::string nodes{};  // "0-2,4": the members
  std::uint32_t launcher = 0;
};

struct join_request {
  unsigned nodes = 1;
  unsigned workers = 0;   // of each; 0: what is left of the cores
  std::string host{};     // as ssh gets it; empty: the launcher's own
  std::string address{};  // of that host, numeric
};

std::string pack_ask_status();
std::string pack_status(const job_status& what);
job_status unpack_status(std::string_view payload);

std::string pack_ask_join(const join_request& what);
join_request unpack_ask_join(std::string_view payload);
std::string pack_joined(node_id node);

std::string pack_ask_leave(node_id node);
std::string pack_left(node_id node);

std::string pack_denied(const std::string& why);
std::string unpack_denied(std::string_view payload);

}  // namespace strata::launcher
