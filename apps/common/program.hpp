// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <strata/error.hpp>
#include <strata/global_ptr.hpp>
#include <strata/options.hpp>
#include <strata/runtime.hpp>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "apps/common/command_line.hpp"

// What every application's main() has in common: flags, one-line errors, the timed run and the JSON
// object.
//
//   int main(int argc, char** argv) {
//     return apps::run_program("fib", "the Fibonacci numbers, the slow way", argc, argv,
//     [](apps::program& p) {
//       unsigned n = 0;
//       p.cli().add("N", n, "which number").required().check(apps::whole_number(0, 93, "64 bits"));
//       p.offer_styles({apps::style::serial, apps::style::fork_join});
//       p.parse();
//       auto value = p.timed([&] { return p.how() == apps::style::serial ? serial(n) : parallel(n);
//       }); std::printf("fib(%u) = %llu\n", n, value); return p.finish({{"n", n}}, {{"value",
//       value}}, value == closed_form(n));
//     });
//   }
namespace apps {

// How an application expresses its parallelism.
enum class style { serial, fork_join, fibers };

// The spelling used by --style and in JSON: "serial", "fork-join", "fibers".
std::string_view name_of(style s);

// Exit codes: 0 correct, 1 the application found its own result wrong, 2 the user can put it right.
enum exit_code : int { exit_ok = 0, exit_wrong_result = 1, exit_bad_input = 2 };

class program {
 public:
  program(std::string name, const std::string& description, int argc, char** argv);
  program(const program&) = delete;
  program& operator=(const program&) = delete;

  // Add the application's own options here, before parse(). --help and --json are there already.
  command_line& cli() { return cli_; }

  // Adds --style with these choices; the first is the default. Without this call there is no such
  // flag and how() is fork_join.
  void offer_styles(std::initializer_list<style> styles);

  // Reads the command line: first the runtime's (--strata-*, STRATA_*), then the application's own.
  // Throws what run_program() turns into an exit code.
  void parse();

  // For work that needs no runtime, behind parse(), which does so itself for the style serial:
  // refuses to measure one, but in a job, which has one in any case. `why`: and what to do.
  void refuse_to_measure(const std::string& why) const;

  // Unless --style says otherwise, work on several nodes is done in this style. Call it before
  // offer_styles(), whose help mentions it.
  void prefer_on_several_nodes(style s) { several_nodes_ = s; }

  // Final within timed().
  style how() const { return how_; }
  bool json() const { return json_; }
  strata::options& runtime_options() { return runtime_options_; }
  // Whether the command line has this flag of the runtime ("--strata-policy"). Before parse(),
  // which takes it out.
  bool has_runtime_flag(std::string_view flag) const;

  // Runs work() where the style says, in this thread for serial, else inside a runtime made for it,
  // and returns its result. Starting and stopping the runtime is not part of seconds(). In a job of
  // several nodes only node 0 comes to work(); the others serve it, and end here.
  template <class F>
  auto timed(F&& work) -> std::invoke_result_t<F&> {
    if (how_ == style::serial && !in_job()) {
      workers_ = 1;
      const stopwatch clock(seconds_);
      return work();
    }
    started_ = true;
    strata::runtime runtime(runtime_options_);
    nodes_ = runtime.run([] { return strata::num_nodes(); });
    if (how_ == style::serial) {  // on node 0
      workers_ = 1;
      const stopwatch clock(seconds_);
      return work();
    }
    if (nodes_ > 1 && several_nodes_ && !style_given_) how_ = *several_nodes_;
    workers_ = runtime.workers();
    const stopwatch clock(seconds_);
    return runtime.run(work);
  }

  // For an application that starts its engine itself: say so before, and afterwards what timed()
  // would have noted. style: what JSON says of how the work was done.
  void starts_runtime() { started_ = true; }
  void note_run(std::string style, double seconds, unsigned workers) {
    style_note_ = std::move(style);
    seconds_ = seconds;
    workers_ = workers;
  }
  // Whether this process was started as a node of a job, as far as parse() has settled that.
  bool in_job() const;

  // True where this process should talk to the user: before the runtime has started all nodes of a
  // job do the same, so only node 0 says it.
  bool speaks() const { return started_ || differs_ || is_first_node(); }

  // What this node is about to refuse, node 0 does not: this one says it, too.
  void differs_from_first_node() { differs_ = true; }

  // False for the nodes of a job other than 0. Known before the runtime starts, as in_job() is.
  bool is_first_node() const;

  double seconds() const { return seconds_; }    // of the last timed(), wall clock
  unsigned workers() const { return workers_; }  // of the last timed(), of this node
  unsigned nodes() const { return nodes_; }      // of the last timed()

  // The last thing an application does: writes the JSON object if it was asked for, makes sure that
  // standard output took all of it, says on stderr why it is not ok, and returns the exit code:
  // `if_not`, another one than exit_wrong_result where the application has told what it means.
  int finish(const nlohmann::json& parameters, const nlohmann::json& result, bool ok,
             const char* why_not =
                 "the result is wrong: it differs from the known value; please "
                 "report this",
             int if_not = exit_wrong_result) const;

 private:
  class stopwatch {
   public:
    explicit stopwatch(double& seconds) : seconds_(seconds) {}
    ~stopwatch() {
      seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    }
    stopwatch(const stopwatch&) = delete;
    stopwatch& operator=(const stopwatch&) = delete;

   private:
    double& seconds_;
    std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  };

  std::string name_;
  command_line cli_;
  int argc_;
  char** argv_;
  bool json_ = false;
  style how_ = style::fork_join;
  bool style_given_ = false;
  std::optional<style> several_nodes_;
  bool started_ = false;  // a runtime, or tried to
  bool differs_ = false;
  strata::options runtime_options_;
  double seconds_ = 0;
  unsigned workers_ = 0;
  unsigned nodes_ = 1;
  std::string style_note_;  // empty: how_ says it
};

// Calls body and turns every outcome into an exit code: what the user can put right becomes one
// line "name: what, where, what to do" on stderr and code 2; --help prints the help and gives 0.
int run_program(const std::string& name, const std::string& description, int argc, char** argv,
                int (*body)(program&));

}  // namespace apps
