// SPDX-License-Identifier: Apache-2.0
#include "apps/common/program.hpp"

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <map>
#include <new>
#include <sstream>
#include <strata/error.hpp>
#include <strata/launched.hpp>
#include <system_error>
#include <utility>

namespace apps {
namespace {

// Library messages may span lines; a user gets one.
std::string one_line(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  for (std::size_t at = 0; (at = text.find_first_of("\r\n\t", at)) != std::string::npos;) {
    text[at] = ' ';
  }
  return text;
}

int complain(const std::string& name, const std::string& message, int code) {
  std::fflush(stdout);
  std::fprintf(stderr, "%s: %s\n", name.c_str(), one_line(message).c_str());
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

bool program::in_job() { return strata::launched_node().has_value(); }

bool program::is_first_node() { return strata::launched_node().value_or(0) == 0; }

program::program(std::string name, const std::string& description, int argc, char** argv)
    : name_(std::move(name)), cli_(description, name_), argc_(argc), argv_(argv) {
  cli_.set_help_flag("-h,--help", "print this help and exit");
  cli_.add_flag("--json", json_, "print one JSON object on the last line of standard output");
  cli_.footer(
      "The runtime's own flags start with --strata-: --strata-workers N, --strata-stats, ...\n"
      "Exit codes: 0 correct, 1 the result failed its own check, 2 something in the input to put "
      "right.");
  cli_.get_formatter()->column_width(32);
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
  cli_.add_option_function<std::string>(
          "--style",
          [this, choices, listed](const std::string& text) {
            const auto found = choices.find(text);
            if (found == choices.end()) {
              throw strata::user_error("--style: '" + text +
                                       "' is not a style; choose one of: " + listed);
            }
            how_ = found->second;
            style_given_ = true;
          },
          "how the parallelism is expressed: " + listed + " [" + std::string(name_of(how_)) +
              (several_nodes_ ? "; on several nodes " + std::string(name_of(*several_nodes_)) + "]"
                              : "]"))
      ->type_name("STYLE");
}

void program::parse() {
  runtime_options_ = strata::options::parse(argc_, argv_);
  cli_.parse(argc_, argv_);
}

int program::finish(const nlohmann::json& parameters, const nlohmann::json& result, bool ok,
                    const char* why_not) const {
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
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    throw strata::user_error(std::string("standard output: ") + std::strerror(errno) +
                             "; free some space or write elsewhere");
  }
  return ok ? exit_ok : complain(name_, why_not, exit_wrong_result);
}

CLI::Validator whole_number(long long first, long long last, const std::string& why) {
  return CLI::Validator(
      [=](std::string& text) -> std::string {
        long long value = 0;
        const char* const end = text.data() + text.size();
        const auto parsed = std::from_chars(text.data(), end, value);
        // CLI11 would read a leading zero as octal; refuse it instead of guessing.
        const bool octal = text.size() > 1 && text[0] == '0';
        if (parsed.ptr != end || parsed.ec == std::errc::invalid_argument || octal) {
          return "'" + text + "' is not a whole number";
        }
        if (parsed.ec != std::errc() || value < first || value > last) {
          return text + " is not within " + std::to_string(first) + " to " + std::to_string(last) +
                 " (" + why + ")";
        }
        return {};
      },
      "", "range");
}

CLI::Validator real_number(double first, double last, const std::string& why) {
  return CLI::Validator(
      [=](std::string& text) -> std::string {
        double value = 0;
        const char* const end = text.data() + text.size();
        const auto parsed = std::from_chars(text.data(), end, value);
        if (parsed.ptr != end || parsed.ec == std::errc::invalid_argument) {
          return "'" + text + "' is not a number";
        }
        // Written so that a NaN is refused.
        if (parsed.ec != std::errc() || !(value >= first && value <= last)) {
          std::ostringstream message;
          message << text << " is not within " << first << " to " << last << " (" << why << ")";
          return message.str();
        }
        return {};
      },
      "", "range");
}

int run_program(const std::string& name, const std::string& description, int argc, char** argv,
                int (*body)(program&)) {
  program p(name, description, argc, argv);
  const auto refuse = [&](const std::string& message, int code) {
    return p.speaks() ? complain(name, message, code) : code;
  };
  try {
    return body(p);
  } catch (const CLI::CallForHelp&) {
    if (p.speaks()) std::printf("%s", p.cli().help().c_str());
    return std::fflush(stdout) == 0 ? exit_ok : exit_bad_input;
  } catch (const CLI::ParseError& e) {
    return refuse(one_line(e.what()) + "; '" + name + " --help' lists what it takes",
                  exit_bad_input);
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
    return refuse(std::string("internal error: ") + e.what() + "; please report this",
                  exit_wrong_result);
  } catch (const std::exception& e) {
    return refuse(std::string("internal error: ") + e.what() + "; please report this",
                  exit_wrong_result);
  }
}

}  // namespace apps
