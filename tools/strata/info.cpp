// SPDX-License-Identifier: Apache-2.0
#include "tools/strata/info.hpp"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>

#include "base/values.hpp"
#include "launch/build_id.hpp"
#include "launch/pmix/available.hpp"
#include "launch/share_cores.hpp"
#include "launch/site.hpp"
#include "os/topology.hpp"
#include "strata/error.hpp"
#include "strata/version.hpp"
#include "tools/strata/hosts.hpp"

namespace strata::launch {

namespace {

// What a program that is started as we are would find.
void print_launch() {
  const site where = look_at_site();
  if (should_join(where, "auto")) {
    std::printf("launch: PMIx, job %s, %s\n", where.name_space.c_str(),
                pmix::describe_job().c_str());
  } else if (where.has_pmix) {
    std::printf("launch: none (STRATA_LAUNCH=none; PMIx has started this process)\n");
  } else {
    std::printf("launch: none%s%s\n", where.hint.empty() ? "" : "; ", where.hint.c_str());
  }
  std::printf("PMIx: %s\n", pmix::describe().c_str());
}

}  // namespace

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
  cli.footer(
      "strata info --routes [FLAGS OF strata run] [--networks LIST] runs a job that measures and "
      "prints the way from every node to every other one.");
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
  print_launch();
  std::printf("strata run -n %u would start:\n", nodes);
  const core_plan plan = share_cores({.nodes = nodes});
  for (unsigned node = 0; node < nodes; ++node) {
    std::printf("  node %u: %s\n", node, to_text(plan.nodes[node]).c_str());
  }
  if (!plan.warning.empty()) std::printf("  %s\n", plan.warning.c_str());
  return EXIT_SUCCESS;
}

}  // namespace strata::launch
