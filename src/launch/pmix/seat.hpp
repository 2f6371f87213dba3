// SPDX-License-Identifier: Apache-2.0
// What nodes of a job of PMIx tell each other before they are one: records, packed and unpacked.
// Every unpack_ throws strata::error unless the bytes are exactly right.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "launch/job.hpp"
#include "launch/pmix/host_memory.hpp"

namespace strata::launch::pmix {

// Told by every node.
struct seat {
  std::uint32_t process = 0;      // its number on its host
  std::uint32_t first_there = 0;  // the lowest rank on its host: says who is on one host
  std::vector<int> cpus;          // that it may use
  host_memory::ticket memory;     // only of the first of a host
};

// Told by node 0, to the nodes of the job alone.
struct secret {
  std::uint64_t job = 0;
  job_key key{};
  transport_choice transport = transport_choice::automatic;
};

// Told by every node when it knows where it listens.
struct entry {
  std::string build_id;
  address where;
};

std::string pack(const seat& s);
seat unpack_seat(std::string_view bytes);
std::string pack(const secret& s);
secret unpack_secret(std::string_view bytes);
std::string pack(const entry& e);
entry unpack_entry(std::string_view bytes);
// Told by every node of a job that finds its networks itself.
std::string unpack_found_networks(std::string_view bytes);
// Told by every node of a job of several networks.
std::string pack(const std::vector<closed_link>& mine);
std::vector<closed_link> unpack_closed_links(std::string_view bytes);

std::string pack(const std::vector<measured_link>& mine);
std::vector<measured_link> unpack_links(std::string_view bytes);

}  // namespace strata::launch::pmix
