// SPDX-License-Identifier: Apache-2.0
#include "apps/common/program.hpp"

#include <cstdio>
#include <map>
#include <new>
#include <strata/error.hpp>
#include <strata/launched.hpp>
#include <system_error>
#include <utility>

#include "src/base/one_line.hpp"
#include "src/base/shortened.hpp"
#include "src/base/standard_output.hpp"
#include "src/base/standard_streams.hpp"

namespace apps {
namespace {

int complain(const std::string& name, const std::string& message, int code) {
  std::fflush(stdout);
  std::fprintf(stderr, "%s: %s\n", name.c_str(), strata::one_line(message).c_str());
  return code;
}

}  // namespace

std::string_view name_of(style s) {
  switch (s) {
    case style::serial:
      return "serial";
    case style::fork_join:
      return "fork-join";
    case style::fibers:
      return "fibers";
  }
  return "?";
}

bool program::in_job() const { return strata::launched_node(runtime_options_).has_value(); }

bool program::is_first_node() const {
  return strata::launched_node(runtime_options_).value_or(0) == 0;
}

program::program(std::string name, const std::string& description, int argc, char** argv)
    : name_(std::move(name)), cli_(name_, description), argc_(argc), argv_(argv) {
  cli_.add_flag("--json", json_, "print one JSON object on the last line of standard output");
  cli_.add_footer(
      "The runtime's own flags start with --strata-: --strata-workers N, --strata-stats, ...; "
      "--strata-help lists them.\n"
      "Exit codes: 0 correct, 1 the result failed its own check, 2 something in the input to put "
      "right.");
}

void program::offer_styles(std::initializer_list<style> styles) {
  std::map<std::string, style> choices;
  std::string listed;
  for (const style s : styles) {
    choices.emplace(name_of(s), s);
    if (!listed.empty()) listed += ", ";
    listed += name_of(s);
  }
  how_ = *styles.begin();
  cli_.add(
          "--style",
          [this, choices, listed](const std::string& text) {
            const auto found = choices.find(text);
            if (found == choices.end()) {
              throw strata::user_error("--style: " + strata::in_quotes(text) +
                                       " is not a style; choose one of: " + listed);
            }
            how_ = found->second;
            style_given_ = true;
          },
          "how the parallelism is expressed: " + listed + " [" + std::string(name_of(how_)) +
              (several_nodes_ ? "; on several nodes " + std::string(name_of(*several_nodes_)) + "]"
                              : "]"))
      .type_name("STYLE");
}

bool program::has_runtime_flag(std::string_view flag) const {
  for (int i = 1; i < argc_; ++i) {
    const std::string_view given = argv_[i];
    if (given == "--") return false;
    if (given.starts_with(flag) && (given.size() == flag.size() || given[flag.size()] == '='))
      return true;
  }
  return false;
}

void program::parse() {
  runtime_options_ = strata::options::parse(argc_, argv_);
  cli_.parse(argc_, argv_);
  if (how_ == style::serial)
    refuse_to_measure(
        "the serial style has no runtime to measure; leave it out, or take another style");
}

void program::refuse_to_measure(const std::string& why) const {
  if (in_job()) return;
  if (runtime_options_.stats) throw strata::user_error("--strata-stats (or STRATA_STATS): " + why);
  if (runtime_options_.profile)
    throw strata::user_error("--strata-profile (or STRATA_PROFILE): " + why);
}

int program::finish(const nlohmann::json& parameters, const nlohmann::json& result, bool ok,
                    const char* why_not, int if_not) const {
  if (json_) {
    nlohmann::ordered_json object;
    object["app"] = name_;
    object["parameters"] = parameters;
    object["result"] = result;
    object["seconds"] = seconds_;
    object["nodes"] = nodes_;
    object["workers"] = workers_;
    object["style"] = style_note_.empty() ? std::string(name_of(how_)) : style_note_;
    object["ok"] = ok;
    // What is not UTF-8 in a path is replaced.
    std::printf("%s\n",
                object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  }
  strata::flush_standard_output();
  return ok ? exit_ok : complain(name_, why_not, if_not);
}

int run_program(const std::string& name, const std::string& description, int argc, char** argv,
                int (*body)(program&)) {
  program p(name, description, argc, argv);
  const auto refuse = [&](const std::string& message, int code) {
    return p.speaks() ? complain(name, message, code) : code;
  };
  const auto our_mistake = [&](const std::exception& e) {
    return refuse(std::string("internal error: ") + e.what() + "; please report this",
                  exit_wrong_result);
  };
  const auto run_or_help = [&]() -> int {
    try {
      return body(p);
    } catch (const help_wanted& help) {
      if (p.speaks()) std::printf("%s", help.text.c_str());
    }
    strata::flush_standard_output();
    return exit_ok;
  };
  try {
    strata::keep_numbers_of_standard_streams();
    return run_or_help();
  } catch (const strata::user_error& e) {
    return refuse(e.what(), exit_bad_input);
  } catch (const strata::node_lost_error& e) {
    return refuse(e.what(), exit_wrong_result);
  } catch (const std::bad_alloc&) {
    return refuse("out of memory; take a smaller problem or fewer workers", exit_bad_input);
  } catch (const std::system_error& e) {
    if (e.code() == std::errc::resource_unavailable_try_again)
      return refuse(std::string("no thread can be had: ") + e.what() +
                        "; take fewer workers, or allow more threads (ulimit -u) or memory",
                    exit_bad_input);
    return our_mistake(e);
  } catch (const strata::misuse_error& e) {
    return our_mistake(e);
  } catch (const strata::remote_error& e) {
    return our_mistake(e);
  } catch (const strata::error& e) {  // the system, or another host, has refused something
    return refuse(e.what(), exit_wrong_result);
  } catch (const std::exception& e) {
    return our_mistake(e);
  }
}

}  // namespace apps
