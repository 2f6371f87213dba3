// SPDX-License-Identifier: Apache-2.0
#include "program_unconnected.hpp"

#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

#include "src/cluster/engine/program_build.hpp"
#include "src/launch/job.hpp"
#include "src/net/udp/seal.hpp"

using namespace strata;

// The others know where node 1 is, and never hear of it.
void die_before_it_connects() {
  const char* const number = std::getenv("STRATA_NODE");
  if (number == nullptr || number != std::string_view("1")) return;
  const auto line = launch::control_line::open();
  (void)line->exchange({line->job().bind_address, 9, net::udp::fresh_nonce()},
                       cluster::program_build());
  ::kill(::getpid(), SIGKILL);
}
