// SPDX-License-Identifier: Apache-2.0
// What the user asked of `strata run`, checked.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launch/job.hpp"
#include "tools/strata/events/shared_names.hpp"
#include "tools/strata/hosts/hosts.hpp"

namespace strata::launcher {

struct run_request {
  unsigned nodes = 1;
  // Nodes may come and go, until so many numbers have been given out.
  bool elastic = false;
  unsigned capacity = 0;
  unsigned workers = 0;     // of each node; 0: not said
  std::vector<host> hosts;  // empty: this machine
  transport_choice transport = transport_choice::automatic;
  std::string bind_address;  // empty: chosen by the launcher
  std::optional<bool> bind;  // none: not said
  bool prefix = false;
  bool print_binding = false;
  std::int64_t start_limit_ns = 30'000'000'000;
  std::vector<std::string> variables;  // NAME=VALUE
  std::string program;                 // a path
  std::vector<std::string> arguments;  // beginning with the program as the user named it
};

// Thrown when help was asked for, and has been printed.
struct help_given {};

// The words after `strata run`. Throws user_error, help_given.
run_request parse_run(int argc, char** argv);

}  // namespace strata::launcher
