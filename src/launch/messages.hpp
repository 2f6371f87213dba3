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

struct admit_message {
  node_id node = 0;
  std::uint16_t host = 0;
  address where;
};

std::string pack_welcome(const job_description& job);
job_description unpack_welcome(std::string_view payload);

std::string pack_reachable(const reachable_message& message);
reachable_message unpack_reachable(std::string_view payload);

std::string pack_directory(const std::vector<address>& everybody);
std::vector<address> unpack_directory(std::string_view payload);

std::string pack_measured(const std::vector<measured_link>& mine);
std::vector<measured_link> unpack_measured(std::string_view payload);

// The kinds closed and all_closed.
std::string pack_closed(frame_kind kind, const std::vector<closed_link>& all);
std::vector<closed_link> unpack_closed(std::string_view payload);

// By node.
std::string pack_measurements(const std::vector<std::vector<measured_link>>& everybodys);
std::vector<std::vector<measured_link>> unpack_measurements(std::string_view payload);

// The kind found; and by node, all_found.
std::string pack_found(std::string_view mine);
std::string unpack_found(std::string_view payload);
std::string pack_all_found(const std::vector<std::string>& everybodys);
std::vector<std::string> unpack_all_found(std::string_view payload);

std::string pack_ways(std::string_view plan);
std::string unpack_ways(std::string_view payload);

std::string pack_lost(const lost_message& message);
std::string pack_missed(const lost_message& message);
lost_message unpack_lost(std::string_view payload);  // of either

std::string pack_finished();

std::string pack_admit(const admit_message& message);
admit_message unpack_admit(std::string_view payload);

std::string pack_word(word_to_launcher word, node_id about);

// Whatever says no more than which node it is about, like a word.
std::string pack_node(frame_kind kind, node_id node);
node_id unpack_node(std::string_view payload);

// leave, go
std::string pack_order(frame_kind kind);

// Parts of the welcome that also travel to agents.
void write_job(payload_writer& out, const job_description& job);
job_description read_job(payload_reader& in);

}  // namespace strata::launch
