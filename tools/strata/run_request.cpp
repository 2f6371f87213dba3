// SPDX-License-Identifier: Apache-2.0
#include "tools/strata/run_request.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string_view>
#include <utility>

#include "base/shortened.hpp"
#include "base/values.hpp"
#include "net/ucx/available.hpp"
#include "strata/error.hpp"
#include "tools/strata/processes/program_path.hpp"

namespace strata::launcher {

namespace {

constexpr unsigned elastic_nodes_default = 64;
constexpr double start_limit_s_min = 0.1;
constexpr double start_limit_s_max = 86'400;

std::int64_t parse_start_limit(const std::string& text) {
  double seconds = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, seconds);
  if (parsed.ptr != end || parsed.ec != std::errc() ||
      !(seconds >= start_limit_s_min && seconds <= start_limit_s_max)) {
    throw user_error(in_quotes(text) + " is not a number of seconds from 0.1 to 86400");
  }
  return std::llround(seconds * 1e9);
}

// NAME=VALUE, or NAME with the value that it has here.
std::string parse_variable(const std::string& text) {
  const auto equals = text.find('=');
  const std::string name = text.substr(0, equals);
  if (name.empty()) throw user_error(in_quotes(text) + " is not VAR or VAR=VALUE");
  if (equals != std::string::npos) return text;
  const char* const value = std::getenv(name.c_str());
  if (value == nullptr) throw user_error("the variable " + name + " is not set");
  return name + "=" + value;
}

template <class T>
T choose(const std::map<std::string, T>& choices, const std::string& text) {
  const auto found = choices.find(text);
  if (found != choices.end()) return found->second;
  std::string all;
  for (const auto& [name, value] : choices) all += (all.empty() ? "" : ", ") + name;
  throw user_error(in_quotes(text) + " is none of: " + all);
}

transport_choice parse_transport(const std::string& text) {
  std::map<std::string, transport_choice> choices;
  for (const named_transport& one : named_transports)
    choices.emplace(std::string(one.name), one.choice);
  const auto chosen = choose<transport_choice>(choices, text);
  if (network_of(chosen) == network_kind::ucx && !net::ucx::is_built())
    throw user_error(net::ucx::how_to_get());
  return chosen;
}

// The node numbers of an elastic job.
void allow_changes(run_request& request, const std::string& most) {
  request.elastic = true;
  request.capacity = std::max(elastic_nodes_default, request.nodes);
  try {
    if (most != "true") request.capacity = static_cast<unsigned>(parse_whole(most, 1, nodes_max));
  } catch (const user_error& problem) {
    throw user_error(std::string("--elastic: ") + problem.what());
  }
  if (request.capacity < request.nodes) {
    throw user_error("--elastic=" + std::to_string(request.capacity) + " is less than -n " +
                     std::to_string(request.nodes));
  }
}

// What `set` throws begins with the flag's name.
void add(CLI::App& cli, const std::string& flag, const std::string& value, const std::string& help,
         const std::function<void(const std::string&)>& set) {
  const std::string shown = flag.substr(flag.find("--") == std::string::npos ? 0 : flag.find("--"));
  cli.add_option_function<std::vector<std::string>>(
         flag,
         [set, shown](const std::vector<std::string>& texts) {
           for (const std::string& text : texts) {
             try {
               set(text);
             } catch (const user_error& problem) {
               throw user_error(shown + ": " + problem.what());
             }
           }
         },
         help)
      ->type_name(value)
      ->allow_extra_args(false);
}

// Where the nodes are, and how many. `from_file`: the hosts of hostfiles.
void add_placement_flags(CLI::App& cli, run_request& request, std::vector<host>& from_file) {
  add(cli, "-n", "N", "number of nodes, 1 to 4096 [1]", [&](const std::string& text) {
    request.nodes = static_cast<unsigned>(parse_whole(text, 1, nodes_max));
  });
  add(cli, "--workers", "W", "workers of each node [its share of the cores]",
      [&](const std::string& text) {
        request.workers = static_cast<unsigned>(parse_whole(text, 1, workers_max));
      });
  add(cli, "--hostfile", "FILE",
      "hosts to run on, in place of --host: lines 'NAME [slots=N] [address=A]'",
      [&](const std::string& text) { append_hosts(from_file, read_hostfile(text)); });
  add(cli, "--host", "A,B:2,...", "hosts to run on, with the number of nodes that each takes",
      [&](const std::string& text) { append_hosts(request.hosts, parse_host_list(text)); });
}

// What holds for each of them, and for what is between them.
void add_node_flags(CLI::App& cli, run_request& request) {
  add(cli, "--transport", "auto|shm|tcp|ucx|udp|shm+tcp|shm+ucx|shm+udp",
      "how nodes talk: by one for all, or by shm within a host and the other between hosts [auto: "
      "shm+tcp]",
      [&](const std::string& text) { request.transport = parse_transport(text); });
  add(cli, "--bind", "core|none", "workers stay on cores of their own, or not [core]",
      [&](const std::string& text) {
        request.bind = choose<bool>({{"core", true}, {"none", false}}, text);
      });
  add(cli, "--bind-address", "ADDRESS",
      "where the nodes of one host listen [127.0.0.1; with --elastic and --host that of the host]",
      [&](const std::string& text) {
        if (text.empty()) throw user_error("'' is no address");
        request.bind_address = text;
      });
  add(cli, "-x", "VAR[=VALUE]", "a variable for all nodes; other hosts get only these",
      [&](const std::string& text) { request.variables.push_back(parse_variable(text)); });
  add(cli, "--start-limit", "SECONDS", "all nodes must have joined by then [30]",
      [&](const std::string& text) { request.start_limit_ns = parse_start_limit(text); });
}

// To the parser a value that is empty, as of a variable in a script that is, is none: it would take
// the next word, the program's name perhaps.
void refuse_empty_values(const CLI::App& cli, int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--" || !word.starts_with('-')) return;  // the program's from here on
    const CLI::Option* const flag = cli.get_option_no_throw(std::string(word));
    if (flag != nullptr && flag->get_items_expected_min() > 0) ++i;  // its value follows
    if (word.starts_with("--") && word.ends_with('='))
      throw user_error(in_quotes(word) + " names no value; leave it out, or say one");
  }
}

// The program and its arguments.
std::vector<std::string> command_in(std::vector<std::string> words) {
  if (!words.empty() && words[0] == "--") {
    words.erase(words.begin());
  } else if (!words.empty() && words[0].starts_with("--strata-")) {
    throw user_error(words[0] + " is the program's: it goes after PROGRAM");
  } else if (!words.empty() && words[0].starts_with('-')) {
    throw user_error("unknown flag " + words[0] + "; strata run --help lists the flags");
  }
  if (words.empty()) throw user_error("which program? Usage: strata run -n N PROGRAM ARGUMENTS");
  return words;
}

}  // namespace

run_request parse_run(int argc, char** argv) {
  run_request request;
  std::vector<host> from_file;
  CLI::App cli(
      "Runs PROGRAM as a job of N nodes: processes that share the work.\n"
      "Usage: strata run [flags] PROGRAM [ARGUMENTS...]; what follows PROGRAM belongs to it.",
      "strata run");
  cli.prefix_command();
  add_placement_flags(cli, request, from_file);
  add_node_flags(cli, request);
  std::string elastic;
  cli.add_flag("--elastic", elastic,
               "nodes may join and leave while the job runs; --elastic=MAX: MAX in all [64, or N]");
  cli.add_flag("--prefix", request.prefix, "begin each line of output with its node: [3] ...");
  cli.add_flag("--print-binding", request.print_binding, "say which node runs on which cores");
  cli.get_formatter()->column_width(32);
  cli.footer(
      "Exit status: that of node 0; 128 + the signal that killed a node; 2 for wrong input.");
  refuse_empty_values(cli, argc, argv);
  try {
    cli.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    std::fputs(cli.help().c_str(), stdout);
    throw help_given();
  } catch (const CLI::ParseError& problem) {
    throw user_error(in_brief(problem.what()) + "; strata run --help lists the flags");
  }
  if (!elastic.empty()) allow_changes(request, elastic);
  request.arguments = command_in(cli.remaining());
  if (!from_file.empty() && !request.hosts.empty()) {
    throw user_error("--host and --hostfile exclude each other");
  }
  if (!from_file.empty()) request.hosts = std::move(from_file);
  request.program = find_program(request.arguments[0]);
  return request;
}

}  // namespace strata::launcher
