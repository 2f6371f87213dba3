// SPDX-License-Identifier: Apache-2.0
#include "apps/common/command_line.hpp"

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <sstream>
#include <strata/error.hpp>
#include <system_error>
#include <utility>

#include "src/base/shortened.hpp"
#include "src/base/unknown_flag.hpp"

namespace apps {

namespace {

// What CLI11 says, where that is plain.
std::string words_of(const CLI::ParseError& e, const CLI::App& app) {
  const std::string said = strata::in_brief(e.what());
  const auto name = [&] { return said.substr(0, said.find(": ")); };
  if (said.find(": At Most 1 required but received ") != std::string::npos)
    return name() + " is given more than once";
  if (said.find(" required ") != std::string::npos && said.ends_with(" missing"))
    return name() + " needs a value";
  const auto commands = app.get_subcommands([](const CLI::App*) { return true; });
  const std::vector<std::string> rest = app.remaining(true);
  if (e.get_name() != "RequiredError" || commands.empty() || !app.get_subcommands().empty()) {
    const auto code = static_cast<CLI::ExitCodes>(e.get_exit_code());
    const bool is_about_rest =
        code == CLI::ExitCodes::RequiredError || code == CLI::ExitCodes::ExtrasError;
    return is_about_rest ? strata::unknown_flag_or(said, rest) : said;
  }
  std::string all;
  for (const CLI::App* const one : commands) all += (all.empty() ? "" : ", ") + one->get_name();
  return rest.empty() ? "which command? One of: " + all
                      : strata::in_quotes(rest.front()) + " is none of: " + all;
}

}  // namespace

option& option::required() {
  option_->required();
  return *this;
}

option& option::type_name(const std::string& shown) {
  option_->type_name(shown);
  return *this;
}

option& option::check(const requirement& r) {
  option_->check(
      CLI::Validator([refusal = r.refusal](std::string& text) { return refusal(text); }, r.shown));
  return *this;
}

requirement whole_number(long long first, long long last, const std::string& why) {
  return {[=](const std::string& text) -> std::string {
            long long value = 0;
            const char* const end = text.data() + text.size();
            const auto parsed = std::from_chars(text.data(), end, value);
            // CLI11 would read a leading zero as octal; refuse it instead of guessing.
            const bool octal = text.size() > 1 && text[0] == '0';
            if (parsed.ptr != end || parsed.ec == std::errc::invalid_argument || octal) {
              return strata::in_quotes(text) + " is not a whole number";
            }
            if (parsed.ec != std::errc() || value < first || value > last) {
              return text + " is not within " + std::to_string(first) + " to " +
                     std::to_string(last) + " (" + why + ")";
            }
            return {};
          },
          ""};
}

requirement real_number(double first, double last, const std::string& why) {
  return {[=](const std::string& text) -> std::string {
            double value = 0;
            const char* const end = text.data() + text.size();
            const auto parsed = std::from_chars(text.data(), end, value);
            if (parsed.ptr != end || parsed.ec == std::errc::invalid_argument) {
              return strata::in_quotes(text) + " is not a number";
            }
            // Written so that a NaN is refused.
            if (parsed.ec != std::errc() || !(value >= first && value <= last)) {
              std::ostringstream message;
              message << text << " is not within " << first << " to " << last << " (" << why << ")";
              return message.str();
            }
            return {};
          },
          ""};
}

requirement one_of(const std::vector<std::string>& words) {
  std::string listed;
  for (const std::string& word : words) listed += (listed.empty() ? "" : ", ") + word;
  return {[=](const std::string& text) -> std::string {
            for (const std::string& word : words)
              if (word == text) return {};
            return strata::in_quotes(text) + " is not one of: " + listed;
          },
          "{" + listed + "}"};
}

command_line::command_line(const std::string& name, const std::string& description)
    : owned_(std::make_unique<CLI::App>(description, name)), app_(owned_.get()) {
  app_->set_help_flag("-h,--help", "print this help and exit");
  app_->get_formatter()->column_width(32);
}

command_line::command_line(CLI::App* command) : app_(command) {}
command_line::command_line(command_line&&) noexcept = default;
command_line::~command_line() = default;

template <class T>
option command_line::add(const std::string& names, T& to, const std::string& help) {
  return option(app_->add_option(names, to, help));
}
template option command_line::add(const std::string&, int&, const std::string&);
template option command_line::add(const std::string&, unsigned&, const std::string&);
template option command_line::add(const std::string&, std::uint16_t&, const std::string&);
template option command_line::add(const std::string&, std::size_t&, const std::string&);
template option command_line::add(const std::string&, double&, const std::string&);
template option command_line::add(const std::string&, std::string&, const std::string&);
template option command_line::add(const std::string&, std::optional<int>&, const std::string&);
template option command_line::add(const std::string&, std::optional<double>&, const std::string&);
template option command_line::add(const std::string&, std::optional<std::string>&,
                                  const std::string&);

option command_line::add_flag(const std::string& names, bool& to, const std::string& help) {
  return option(app_->add_flag(names, to, help));
}

option command_line::add(const std::string& names, std::function<void(const std::string&)> read,
                         const std::string& help) {
  return option(app_->add_option_function<std::string>(names, std::move(read), help));
}

command_line command_line::add_command(const std::string& name, const std::string& help) {
  app_->require_subcommand(1);
  CLI::App* const command = app_->add_subcommand(name, help);
  command->fallthrough();
  return command_line(command);
}

bool command_line::chosen() const { return app_->parsed(); }

bool command_line::given(const std::string& name) const { return app_->count(name) > 0; }

void command_line::add_footer(const std::string& text) {
  const std::string later = app_->get_footer();
  app_->footer(later.empty() ? text : text + "\n" + later);
}

void command_line::parse(int argc, char** argv) {
  try {
    app_->parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    throw help_wanted{app_->help()};
  } catch (const CLI::ParseError& e) {
    std::string whose = app_->get_name();
    for (const CLI::App* const chosen : app_->get_subcommands()) whose += " " + chosen->get_name();
    throw strata::user_error(words_of(e, *app_) + "; '" + whose + " --help' lists what it takes");
  }
}

}  // namespace apps
