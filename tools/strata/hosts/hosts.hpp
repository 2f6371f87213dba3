// SPDX-License-Identifier: Apache-2.0
// On which hosts a job runs: what the user wrote, and which node goes where.
#pragma once
#include <cstdint>
#include <istream>
#include <string>
#include <vector>

namespace strata::launcher {

inline constexpr unsigned nodes_max = 4096;
inline constexpr unsigned workers_max = 4096;

struct host {
  std::string name{};     // as the user wrote it, and as ssh gets it
  unsigned slots = 0;     // how many nodes it takes at most; 0: not said
  std::string address{};  // where its nodes listen, if the user said so
};

// Throws user_error for what cannot be given to ssh and shown on a terminal.
void check_host_name(const std::string& name);

// Lines "name [slots=N] [address=A]"; '#' begins a comment. A name that comes twice adds its slots
// up. Throws user_error with the line's number.
std::vector<host> parse_hostfile(std::istream& in, const std::string& name);
std::vector<host> read_hostfile(const std::string& path);
// "a,b:2": names, each with its slots if it has a number.
std::vector<host> parse_host_list(const std::string& text);
// Behind those that are there, as if all had been in one list. Throws user_error.
void append_hosts(std::vector<host>& hosts, std::vector<host> more);

// For each node the index of its name: neighbours together, names in order; place() makes one host
// of all names of this machine. When no host says how
// many it takes, all get the same number (or one less); otherwise those that say nothing take one.
// Throws user_error when there is not room for all.
std::vector<std::uint16_t> place_nodes(const std::vector<host>& hosts, unsigned nodes);

}  // namespace strata::launcher
