// SPDX-License-Identifier: Apache-2.0
// Where a program's user says what a runtime is to be like, and what goes before what: flags,
// variables, a file.
#include "strata/options.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <sstream>
#include <string_view>
#include <vector>

#include "base/environment.hpp"
#include "base/given_options.hpp"
#include "base/option_flags.hpp"
#include "base/option_table.hpp"
#include "base/shortened.hpp"
#include "base/small_text.hpp"
#include "base/values.hpp"
#include "strata/error.hpp"

extern char** environ;

namespace strata {
namespace {

// "STACK_BYTES" or "stack_bytes" to "stack-bytes".
std::string key_of(std::string_view spelled) {
  std::string text(spelled);
  for (char& c : text)
    c = c == '_' ? '-' : c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

std::vector<given_option> read_variables() {
  std::vector<given_option> result;
  if (!takes_variables()) return result;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const auto equals = text.find('=');
    const std::string name(text.substr(0, equals));
    // The last three belong to the launcher. What a node starts has its number too, and is none.
    if (!name.starts_with(variable_prefix) || equals == std::string_view::npos ||
        name == "STRATA_CONFIG" || name == "STRATA_JOB_FD" || name == "STRATA_SSH" ||
        name == "STRATA_NODE")
      continue;
    const std::string key = key_of(name.substr(variable_prefix.size()));
    const option_row* what = find_option(key);
    if (what == nullptr || name != variable_of(what->name)) {
      std::fprintf(stderr, "strata: ignoring the unknown variable %s%s\n", name.c_str(),
                   did_you_mean(key, &variable_of).c_str());
    } else if (equals + 1 < text.size()) {
      result.push_back({what, std::string(text.substr(equals + 1)), name});
    }
  }
  return result;
}

// Lines "key = value"; '#' begins a comment; a key may be written with _ for -.
std::vector<given_option> read_file(const std::string& path) {
  std::istringstream in = open_small_text(path, "the configuration file");
  std::vector<given_option> result;
  std::string line;
  for (unsigned number = 1; std::getline(in, line); ++number) {
    const std::string_view text = trimmed(std::string_view(line).substr(0, line.find('#')));
    if (text.empty()) continue;
    const std::string where = path + ":" + std::to_string(number);
    const auto equals = text.find('=');
    if (equals == std::string_view::npos) {
      throw user_error(where + ": " + in_quotes(text) + " is not of the form key = value");
    }
    const std::string key = key_of(trimmed(text.substr(0, equals)));
    if (key == "config") throw user_error(where + ": a configuration file cannot name another one");
    const option_row* what = find_option(key);
    if (what == nullptr) {
      const auto same = [](std::string_view n) { return std::string(n); };
      throw user_error(where + ": unknown key " + in_quotes(key) + did_you_mean(key, same));
    }
    result.push_back({what, std::string(trimmed(text.substr(equals + 1))), where + ": " + key});
  }
  return result;
}

}  // namespace

bool given_options::has(std::string_view name) const noexcept {
  return std::find(names.begin(), names.end(), name) != names.end();
}

given_options parse_given(int& argc, char** argv) {
  const flags from_flags = read_flags(std::span(argv, static_cast<std::size_t>(argc)));
  if (from_flags.help) {
    print_option_help();
    std::exit(EXIT_SUCCESS);
  }
  given_options result;
  const auto take = [&result](const std::vector<given_option>& values) {
    set_all(result.settings, values);
    for (const given_option& one : values) result.names.push_back(one.what->name);
  };
  if (!from_flags.config.empty() && !takes_variables())
    throw user_error("--strata-config: not in a program with rights of its own (set-user-ID)");
  const char* variable = find_variable("STRATA_CONFIG");
  const std::string config = !from_flags.config.empty() ? from_flags.config
                             : variable != nullptr      ? variable
                                                        : "";
  if (!config.empty()) take(read_file(config));
  take(read_variables());
  take(from_flags.values);

  argc = 0;
  for (char* kept : from_flags.rest) argv[argc++] = kept;
  argv[argc] = nullptr;
  return result;
}

options options::parse(int& argc, char** argv) { return parse_given(argc, argv).settings; }

void options::validate() const {
  for (const option_row& one : option_table()) one.check(*this);
  if (node > 65'535)
    throw misuse_error("strata::options: node is " + std::to_string(node) +
                       ", not from 0 to 65535");
}

}  // namespace strata
