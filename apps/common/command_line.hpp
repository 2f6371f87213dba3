// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

// What an application's command line takes, and reading it. CLI11 does the work, in one source
// file: every file that includes it compiles some six seconds longer, though it only names an
// option.
namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace apps {

// What the text of an option has to be.
struct requirement {
  std::function<std::string(const std::string& text)>
      refusal;        // why it will not do; empty if it does
  std::string shown;  // in the help, behind the option's name
};

// A number from first to last. `why` says in the error line where the limit comes from.
requirement whole_number(long long first, long long last, const std::string& why);
requirement real_number(double first, double last, const std::string& why);
requirement one_of(const std::vector<std::string>& words);

// An option that was added; valid as long as its command line. Each call returns *this.
class option {
 public:
  explicit option(CLI::Option* of) : option_(of) {}
  option& required();
  option& type_name(const std::string& shown);
  option& check(const requirement& r);

 private:
  CLI::Option* option_;
};

// Thrown by command_line::parse() where --help was given.
struct help_wanted {
  std::string text;
};

// A command line, or one of its commands (`mapview make ...`), which lives as long as the former.
class command_line {
 public:
  command_line(const std::string& name, const std::string& description);
  command_line(command_line&&) noexcept;
  ~command_line();

  // names: "--gap", "N" for what has none, "N,--keys-log2" for both. What is given is written to
  // `to` by parse(); else `to` keeps its value. T: int, unsigned, std::uint16_t, std::size_t,
  // double, std::string, or std::optional of int, double, std::string.
  template <class T>
  option add(const std::string& names, T& to, const std::string& help);
  option add_flag(const std::string& names, bool& to, const std::string& help);
  // Calls read(text), which may throw strata::user_error.
  option add(const std::string& names, std::function<void(const std::string&)> read,
             const std::string& help);

  // One of the commands added has to be given; the flags of this command line may follow it.
  command_line add_command(const std::string& name, const std::string& help);
  // Whether this command was given. Known after parse().
  bool chosen() const;

  // Whether the option with this name was given. Known after parse().
  bool given(const std::string& name) const;

  // Text at the end of the help; what is added later comes first.
  void add_footer(const std::string& text);

  // Throws help_wanted, strata::user_error, and what the functions added throw.
  void parse(int argc, char** argv);

 private:
  explicit command_line(CLI::App* command);

  std::unique_ptr<CLI::App> owned_;  // of a command: null
  CLI::App* app_;
};

}  // namespace apps
