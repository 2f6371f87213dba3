// SPDX-License-Identifier: Apache-2.0
#include "base/option_flags.hpp"

#include <cstdio>
#include <cstdlib>

#include "base/leading_flags.hpp"
#include "base/shortened.hpp"
#include "base/standard_output.hpp"
#include "base/values.hpp"
#include "strata/error.hpp"

namespace strata {
namespace {

constexpr std::string_view flag_prefix = "--strata-";

std::string flag_of(std::string_view name) { return std::string(flag_prefix) + std::string(name); }

// One word of a command line that begins with flag_prefix, and the next where that is its value.
struct given_flag {
  const option_row* what = nullptr;  // null: is_config or is_help
  bool is_config = false;
  bool is_help = false;
  std::string flag;
  std::string value;
};

// That at arguments[i]; `i` is then the last word of it.
given_flag read_flag(std::span<char*> arguments, std::size_t& i) {
  const std::string_view argument = arguments[i];
  const auto equals = argument.find('=');
  given_flag result;
  result.flag = argument.substr(0, equals);
  const std::string_view name = std::string_view(result.flag).substr(flag_prefix.size());
  result.is_config = name == "config";
  result.is_help = name == "help";
  if (result.is_help) return result;
  result.what = find_option(name);
  if (result.what == nullptr && !result.is_config)
    throw user_error("unknown flag " + brief(result.flag) + did_you_mean(name, &flag_of));
  if (equals != std::string_view::npos) {
    result.value = argument.substr(equals + 1);
  } else if (result.is_config || result.what->needs_value()) {
    if (i + 1 == arguments.size())
      throw user_error(result.flag + " needs a value; --strata-help says which");
    result.value = arguments[++i];
  } else {
    result.value = "yes";
  }
  if (result.is_config && result.value.empty())
    throw user_error(result.flag + " needs the name of a file");
  return result;
}

}  // namespace

flags read_flags(std::span<char*> arguments) {
  flags result;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view argument = arguments[i];
    if (argument == "--") {
      result.rest.insert(result.rest.end(), arguments.begin() + static_cast<std::ptrdiff_t>(i),
                         arguments.end());
      break;
    }
    if (i == 0 || !argument.starts_with(flag_prefix)) {
      result.rest.push_back(arguments[i]);
      continue;
    }
    const given_flag one = read_flag(arguments, i);
    if (one.is_help) {
      result.help = true;
    } else if (one.is_config) {
      result.config = one.value;
    } else {
      result.values.push_back({one.what, one.value, one.flag});
    }
  }
  return result;
}

leading_flags read_leading_flags(std::span<char*> arguments) {
  leading_flags result;
  std::vector<given_option> values;
  for (std::size_t i = 0; i < arguments.size(); result.words = ++i) {
    if (!std::string_view(arguments[i]).starts_with(flag_prefix)) break;
    const given_flag one = read_flag(arguments, i);
    if (one.is_help) {
      print_option_help();
      std::exit(EXIT_SUCCESS);
    }
    if (!one.is_config) values.push_back({one.what, one.value, one.flag});
    result.variables.emplace_back(variable_of(one.is_config ? "config" : one.what->name),
                                  one.value);
  }
  options nobody_has_them;
  set_all(nobody_has_them, values);
  return result;
}

void set_all(options& target, const std::vector<given_option>& values) {
  for (const given_option& one : values) {
    try {
      one.what->set(target, one.value);
    } catch (const user_error& problem) {
      throw user_error(one.where + ": " + problem.what());
    }
  }
}

std::string variable_of(std::string_view name) {
  std::string text(variable_prefix);
  for (const char c : name)
    text += c == '-' ? '_' : static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  return text;
}

std::string did_you_mean(std::string_view typed, std::string (*spell)(std::string_view)) {
  std::vector<std::string> names{"config", "help"};
  for (const option_row& one : option_table()) names.emplace_back(one.name);
  std::string text;
  for (const std::string& name : nearest(typed, names)) {
    text += (text.empty() ? "; did you mean " : " or ") + spell(name);
  }
  return text + (text.empty() ? "; " : "? ") + "--strata-help lists them all";
}

void print_option_help() {
  std::puts(
      "Flags of the Strata runtime (each is also a variable and a key of a configuration file):");
  for (const option_row& one : option_table()) {
    const std::string flag =
        flag_of(one.name) + (one.needs_value() ? " " + std::string(one.takes) : "[=no]");
    std::printf("  %-28s %-22s %s\n", flag.c_str(), variable_of(one.name).c_str(),
                std::string(one.help).c_str());
  }
  std::printf("  %-28s %-22s %s\n", "--strata-config FILE", "STRATA_CONFIG",
              "file with lines 'key = value', # comments");
  std::printf("  %-28s %-22s %s\n", "--strata-help", "", "this table");
  std::puts("Flag beats variable beats file beats default; of one given twice the last counts.");
  flush_standard_output();
}

}  // namespace strata
