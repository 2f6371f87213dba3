// SPDX-License-Identifier: Apache-2.0
// strata: the command. Each subcommand parses its own words.
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>

#include "base/one_line.hpp"
#include "base/shortened.hpp"
#include "base/standard_output.hpp"
#include "strata/error.hpp"
#include "strata/version.hpp"
#include "tools/strata/info.hpp"
#include "tools/strata/job_commands.hpp"
#include "tools/strata/launcher.hpp"
#include "tools/strata/nodes/agent.hpp"
#include "tools/strata/processes/program_path.hpp"
#include "tools/strata/pthread.hpp"
#include "tools/strata/routes.hpp"

namespace {

constexpr int exit_failed = 1;
constexpr int exit_bad_input = 2;

constexpr const char* usage =
    "Usage: strata COMMAND ...\n"
    "  run      run a program as a job of several nodes\n"
    "  jobs     list the jobs whose nodes may come and go (strata run --elastic)\n"
    "  join     add a node to such a job\n"
    "  leave    let a node leave it\n"
    "  pthread  run a program that is already built with its threads on our workers\n"
    "  info     show the version and the machine as the runtime sees it; info --routes: how the\n"
    "           nodes of a job reach each other\n"
    "strata COMMAND --help says more; strata --version prints the version.\n";

int complain(const std::string& command, const std::string& message, int status) {
  std::fprintf(stderr, "%s\n", strata::one_line(command + ": " + message).c_str());
  return status;
}

// What a command has printed has arrived.
int after_output(const std::string& command, int status) {
  try {
    strata::flush_standard_output();
    return status;
  } catch (const strata::user_error& problem) {
    return complain(command, problem.what(), exit_bad_input);
  }
}

// To the first process of a container a signal without a handler does nothing, not even Ctrl-C
// while we wait for who reads our output.
void end_by_signals_as_others_do() {
  if (::getpid() != 1) return;
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    struct sigaction action {};
    sigaction(number, nullptr, &action);
    if (action.sa_handler == SIG_IGN) continue;
    action.sa_handler = [](int by) { ::_exit(128 + by); };
    sigaction(number, &action, nullptr);
  }
}

int dispatch(std::string_view command, int argc, char** argv,
             strata::launcher::inherited_state& inherited) {
  using namespace strata::launcher;
  if (command == "run") return run_job(parse_run(argc, argv), inherited);
  if (command == "jobs") return run_jobs(argc, argv);
  if (command == "join") return run_join(argc, argv);
  if (command == "leave") return run_leave(argc, argv);
  if (command == "pthread") return run_pthread(argc, argv, inherited);
  if (command == "info") {
    const auto has = [&](std::string_view word) {
      return std::find(argv + 1, argv + argc, word) != argv + argc;
    };
    const bool routes = has("--routes") && !has("--help") && !has("-h");
    return routes ? run_job(routes_request(argc, argv), inherited) : run_info(argc, argv);
  }
  if (command == "report-routes") return report_routes(argc, argv);
  if (command == "agent") return run_agent(inherited);
  if (command == "--help" || command == "-h") {
    std::fputs(usage, stdout);
    return 0;
  }
  if (command == "--version") {
    std::printf("strata %s\n", strata::version());
    return 0;
  }
  throw strata::user_error(strata::in_quotes(command) +
                           " is not a command; strata --help lists them");
}

}  // namespace

int main(int argc, char** argv) {
  strata::launcher::note_own_path();
  end_by_signals_as_others_do();
  std::string name = "strata";
  try {
    strata::launcher::inherited_state inherited;
    if (argc < 2) throw strata::user_error("which command? strata --help lists them");
    const std::string command = argv[1];
    // What the nodes of `strata info --routes` run is no command of the user's.
    if (!command.starts_with('-')) name += " " + (command == "report-routes" ? "info" : command);
    return after_output(name, dispatch(command, argc - 1, argv + 1, inherited));
  } catch (const strata::launcher::help_given&) {
    return after_output(name, 0);
  } catch (const strata::user_error& problem) {
    return complain(name, problem.what(), exit_bad_input);
  } catch (const std::exception& problem) {
    return complain(name, problem.what(), exit_failed);
  }
}
