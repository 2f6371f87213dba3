// SPDX-License-Identifier: Apache-2.0
#include "tools/strata/info.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>

#include "base/shortened.hpp"
#include "base/unknown_flag.hpp"
#include "base/values.hpp"
#include "launch/build_id.hpp"
#include "launch/job.hpp"
#include "launch/job_glance.hpp"
#include "launch/pmix/available.hpp"
#include "launch/share_cores.hpp"
#include "launch/site.hpp"
#include "os/topology.hpp"
#include "strata/error.hpp"
#include "strata/version.hpp"
#include "tools/strata/events/shared_names.hpp"
#include "tools/strata/hosts/hosts.hpp"
#include "tools/strata/processes/start_process.hpp"

namespace strata::launcher {

namespace {

// It has told each node its job by then, unless a program of the node has heard it already.
constexpr std::int64_t welcome_limit_ns = 5'000'000'000;

// As one of the nodes of our launcher: it waits for all to have joined. Null: we are none. A script
// that has started us is the node, and the line is for the program that it starts later.
std::unique_ptr<control_line> join_job() {
  if (!was_started_by_launcher()) return nullptr;
  auto line = control_line::open();
  if (line == nullptr) return line;
  // Some place where nobody looks: all nodes of this job are like this one.
  constexpr std::uint16_t discard_port = 9;
  line->exchange({line->job().bind_address, discard_port}, build_id());
  return line;
}

void print_job(const job_description& job) {
  const auto here = std::count(job.host_of.begin(), job.host_of.end(), job.host_of.at(job.node));
  std::printf("launch: strata run, node %u of %u, %td of them on this host\n", unsigned{job.node},
              unsigned{job.nodes}, here);
}

// What a program that is started as we are would find.
void print_launch(bool has_line, const std::optional<job_description>& job) {
  const site where = look_at_site();
  if (job) {
    print_job(*job);
  } else if (has_line) {
    std::printf("launch: strata run, a node that another program has taken part as\n");
  } else if (should_join(where, "")) {
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
      "prints the way from every node to every other one, of 2 nodes unless -n says otherwise.");
  try {
    cli.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    std::fputs(cli.help().c_str(), stdout);
    return EXIT_SUCCESS;
  } catch (const CLI::ParseError& problem) {
    throw user_error(unknown_flag_or(in_brief(problem.what()), cli.remaining()) +
                     "; strata info --help lists the flags");
  }
  const bool has_line = std::getenv(job_fd_variable) != nullptr;
  const std::unique_ptr<control_line> line = join_job();
  const std::optional<job_description> job =
      line != nullptr ? line->job() : glance_at_job(welcome_limit_ns);
  std::printf("strata %s, build %s\n", version(), build_id().c_str());
  std::printf("%s\n", os::choose_workers().reason.c_str());
  print_launch(has_line, job);
  std::printf("strata run -n %u would start:\n", nodes);
  const core_plan plan = share_cores({.nodes = nodes});
  for (unsigned node = 0; node < nodes; ++node) {
    std::printf("  node %u: %s\n", node, to_text(plan.nodes[node]).c_str());
  }
  if (!plan.warning.empty()) std::printf("  %s\n", plan.warning.c_str());
  if (line != nullptr) line->close();
  return EXIT_SUCCESS;
}

}  // namespace strata::launcher
