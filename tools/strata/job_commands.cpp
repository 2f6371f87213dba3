// SPDX-License-Identifier: Apache-2.0
#include "tools/strata/job_commands.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/shortened.hpp"
#include "base/standard_output.hpp"
#include "base/unknown_flag.hpp"
#include "base/values.hpp"
#include "launch/messages.hpp"
#include "os/clock.hpp"
#include "strata/error.hpp"
#include "tools/strata/control/control_messages.hpp"
#include "tools/strata/control/job_folder.hpp"
#include "tools/strata/events/event_loop.hpp"
#include "tools/strata/events/frame_channel.hpp"
#include "tools/strata/events/shared_names.hpp"
#include "tools/strata/events/signals.hpp"
#include "tools/strata/placement.hpp"

namespace strata::launcher {

namespace {

constexpr std::int64_t status_limit_ns = 2'000'000'000;
constexpr std::size_t prefix_digits_min = 2;
constexpr const char* see_jobs = "strata jobs lists those that are open";

struct open_job {
  std::string name;
  os::descriptor line;  // none: its launcher does not answer
};

// None: a killed launcher has left it behind, and it is removed.
std::optional<open_job> open(const job_folder& folder, const std::string& name) {
  os::descriptor line;
  switch (folder.connect(name, line)) {
    case job_folder::outcome::connected:
      return open_job{name, std::move(line)};
    case job_folder::outcome::failed:
      return open_job{name, {}};
    case job_folder::outcome::nobody:
      folder.remove(name);
      return std::nullopt;
  }
  return std::nullopt;
}

// Those whose names begin so, one after the other, until use(open_job) says that it has enough
// (false). Each is opened when it is its turn: a launcher drops whoever says nothing for long.
template <class Use>
void for_each_job(const std::string& prefix, const Use& use) {
  for (const job_folder& folder : job_folder::all()) {
    for (const std::string& name : folder.jobs()) {
      if (!name.starts_with(prefix)) continue;
      if (std::optional<open_job> job = open(folder, name); job && !use(std::move(*job))) return;
    }
  }
}

open_job find_job(const std::string& prefix) {
  if (prefix.size() < prefix_digits_min ||
      prefix.find_first_not_of("0123456789abcdef") != std::string::npos) {
    throw user_error(in_quotes(prefix) + " is not a job, nor the first digits of one; " + see_jobs);
  }
  std::vector<open_job> found;
  for_each_job(prefix, [&](open_job job) {
    found.push_back(std::move(job));
    return true;
  });
  if (found.empty()) throw error("no job " + prefix + " is open; " + see_jobs);
  if (found.size() > 1) {
    std::string names;
    for (const open_job& one : found) names += (names.empty() ? "" : ", ") + one.name;
    throw user_error(prefix + " may be any of " + names + "; give more digits");
  }
  if (!found[0].line) throw error("the launcher of job " + found[0].name + " does not answer");
  return std::move(found[0]);
}

// One request, and what comes of it.
class conversation {
 public:
  // on_answer returns whether this was the last one, and may throw error.
  conversation(os::descriptor line, const std::string& request,
               std::function<bool(const frame&)> on_answer)
      : on_answer_(std::move(on_answer)),
        signals_(
            loop_, {SIGINT, SIGTERM, SIGHUP},
            [this](const signalfd_siginfo& info) { signal_ = static_cast<int>(info.ssi_signo); }),
        line_(loop_, std::move(line), os::descriptor(),
              {[this](const frame& f) {
                 if (!over_) over_ = on_answer_(f);
               },
               [this](const std::string& why) { on_end(why); }}) {
    line_.send(request);
  }

  // Until the last answer; false: the limit has passed. Throws error when the other end hangs up.
  bool wait(std::int64_t limit_ns = no_deadline) {
    while (!over_ && signal_ == 0) {
      if (os::now_ns() >= limit_ns) return false;
      loop_.run_once(limit_ns);
    }
    if (!problem_.empty()) throw error(problem_);
    return true;
  }
  // The signal that ended the wait, or 0.
  [[nodiscard]] int signal() const noexcept { return signal_; }

 private:
  void on_end(const std::string& why) {
    if (over_) return;
    over_ = true;
    problem_ = why.empty() ? "the job has ended" : why;
  }

  event_loop loop_;
  std::function<bool(const frame&)> on_answer_;
  std::string problem_;
  bool over_ = false;
  int signal_ = 0;
  signal_events signals_;
  frame_channel line_;
};

// The answer to a request for a change: a node for which `expected` is said, or why not.
node_id changed_node(const frame& f, frame_kind expected) {
  if (f.kind == frame_kind::denied) throw error(unpack_denied(f.payload));
  if (f.kind != expected) refuse_frame("a message comes out of turn");
  return unpack_node(f.payload);
}

// Waits for so many nodes to have done what `verb` says.
int change(const char* command, open_job job, const std::string& request, frame_kind expected,
           const char* verb, unsigned nodes) {
  int unwritten = 0;  // errno
  conversation talk(std::move(job.line), request, [&](const frame& f) {
    const node_id node = changed_node(f, expected);
    std::printf("node %u %s job %s\n", unsigned{node}, verb, job.name.c_str());
    if (std::fflush(stdout) != 0 && unwritten == 0) unwritten = errno;
    return --nodes == 0;
  });
  talk.wait();
  if (unwritten != 0) throw_not_written(unwritten);
  if (talk.signal() == 0) return EXIT_SUCCESS;
  std::fprintf(stderr, "strata %s: no longer waiting; job %s goes on with what was asked for\n",
               command, job.name.c_str());
  return 128 + talk.signal();
}

// Text of a program's name, on a terminal.
std::string shown(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < ' ' || c > '~'; }, '?');
  return text;
}

// The words of a command; false: help was asked for and given.
bool parse_words(CLI::App& cli, int argc, char** argv, const std::string& command) {
  cli.get_formatter()->column_width(32);
  try {
    cli.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    std::fputs(cli.help().c_str(), stdout);
    return false;
  } catch (const CLI::ParseError& problem) {
    throw user_error(unknown_flag_or(in_brief(problem.what()), cli.remaining()) + "; strata " +
                     command + " --help says more");
  }
  return true;
}

unsigned parse_count(const std::string& flag, const std::string& text, std::uint64_t low,
                     std::uint64_t high) {
  try {
    return static_cast<unsigned>(parse_whole(text, low, high));
  } catch (const user_error& problem) {
    throw user_error(flag + ": " + problem.what());
  }
}

// Prints what it is, and returns the signal that came meanwhile, or 0.
int list(open_job job) {
  std::optional<job_status> status;
  if (job.line) {
    try {
      conversation talk(std::move(job.line), pack_ask_status(), [&](const frame& f) {
        if (f.kind != frame_kind::status) refuse_frame("a message comes out of turn");
        status = unpack_status(f.payload);
        return true;
      });
      (void)talk.wait(os::now_ns() + status_limit_ns);
      if (talk.signal() != 0) return talk.signal();
    } catch (const error&) {
      // It has ended just now, or is of another version.
      return 0;
    }
  }
  if (status) {
    std::printf("%s  %8u  %-10s  %s\n", job.name.c_str(), status->launcher,
                shown(status->nodes).c_str(), shown(status->program).c_str());
  } else {
    std::printf("%s  its launcher does not answer\n", job.name.c_str());
  }
  return 0;
}

}  // namespace

int run_jobs(int argc, char** argv) {
  CLI::App cli("Lists the jobs of this user that nodes may join: those of strata run --elastic.",
               "strata jobs");
  if (!parse_words(cli, argc, argv, "jobs")) return EXIT_SUCCESS;
  bool any = false;
  int signal = 0;
  for_each_job("", [&](open_job job) {
    if (!std::exchange(any, true)) std::printf("job       launcher  nodes       program\n");
    signal = list(std::move(job));
    return signal == 0;
  });
  if (signal != 0) return 128 + signal;
  if (!any) std::printf("no job is open; strata run --elastic starts one\n");
  return EXIT_SUCCESS;
}

int run_join(int argc, char** argv) {
  std::string job, nodes = "1", workers, host;
  CLI::App cli("Adds nodes to a job of strata run --elastic, and waits until they take part.",
               "strata join");
  cli.add_option("job", job, "the job, or its first digits")->type_name("JOB")->required();
  cli.add_option("-n", nodes, "number of nodes [1]")->type_name("N");
  cli.add_option("--host", host, "where they run [the host of strata run]")->type_name("HOST");
  cli.add_option("--workers", workers, "workers of each [its share of the cores that are left]")
      ->type_name("W");
  if (!parse_words(cli, argc, argv, "join")) return EXIT_SUCCESS;
  join_request what = host.empty() ? join_request() : look_up_late(host);
  what.nodes = parse_count("-n", nodes, 1, nodes_max);
  if (!workers.empty()) what.workers = parse_count("--workers", workers, 1, workers_max);
  return change("join", find_job(job), pack_ask_join(what), frame_kind::joined, "has joined",
                what.nodes);
}

int run_leave(int argc, char** argv) {
  std::string job, node;
  CLI::App cli(
      "Lets a node leave a job of strata run --elastic: it hands over what it has, and ends.",
      "strata leave");
  cli.add_option("job", job, "the job, or its first digits")->type_name("JOB")->required();
  cli.add_option("node", node, "the node's number")->type_name("NODE")->required();
  if (!parse_words(cli, argc, argv, "leave")) return EXIT_SUCCESS;
  const unsigned number = parse_count("NODE", node, 0, nodes_max - 1);
  return change("leave", find_job(job), pack_ask_leave(static_cast<node_id>(number)),
                frame_kind::left, "has left", 1);
}

}  // namespace strata::launcher
