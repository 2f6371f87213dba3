// SPDX-License-Identifier: Apache-2.0
#include "tools/strata/info.hpp"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>

#include "base/values.hpp"
#include "launch/build_id.hpp"
#include "os/topology.hpp"
#include "strata/error.hpp"
#include "strata/version.hpp"
#include "tools/strata/hosts.hpp"
#include "tools/strata/share_cores.hpp"

namespace strata::launch {

int run_info(int argc, char** argv) {
  unsigned nodes = 2;
  CLI::App cli(
      "Prints the version, the machine as the runtime sees it, and how a job of N nodes "
      "would share it.",
      "strata info");
  cli.add_option_function<std::string>(
         "-n",
         [&](const std::string& text) {
           try {
             nodes = static_cast<unsigned>(parse_whole(text, 1, nodes_max));
           } catch (const user_error& problem) {
             throw user_error(std::string("-n: ") + problem.what());
           }
         },
         "number of nodes of the job, 1 to 4096 [2]")
      ->type_name("N");
  try {
    cli.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    std::fputs(cli.help().c_str(), stdout);
    return EXIT_SUCCESS;
  } catch (const CLI::ParseError& problem) {
    throw user_error(std::string(problem.what()) + "; strata info --help lists the flags");
  }
  std::printf("strata %s, build %s\n", version(), build_id().c_str());
  std::printf("%s\n", os::choose_workers().reason.c_str());
  std::printf("strata run -n %u would start:\n", nodes);
  const core_plan plan = share_cores({.nodes = nodes});
  for (unsigned node = 0; node < nodes; ++node) {
    std::printf("  node %u: %s\n", node, to_text(plan.nodes[node]).c_str());
  }
  if (!plan.warning.empty()) std::printf("  %s\n", plan.warning.c_str());
  return EXIT_SUCCESS;
}

}  // namespace strata::launch
