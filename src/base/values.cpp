// SPDX-License-Identifier: Apache-2.0
#include "base/values.hpp"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <utility>

#include "base/shortened.hpp"
#include "strata/error.hpp"

namespace strata {

namespace {

[[noreturn]] void refuse(std::string_view text, const std::string& wanted) {
  throw user_error(in_quotes(text) + " is not " + wanted);
}

// Edit distance: insertions, deletions and replacements of one character.
std::size_t edits_between(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::uint64_t parse_whole(std::string_view text, std::uint64_t low, std::uint64_t high) {
  std::uint64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size() || value < low || value > high) {
    refuse(text, "a whole number from " + std::to_string(low) + " to " + std::to_string(high));
  }
  return value;
}

std::uint64_t parse_bytes(std::string_view text, std::uint64_t low, std::uint64_t high) {
  const auto wrong = [&] {
    refuse(text, "a number of bytes from " + bytes_to_text(low) + " to " + bytes_to_text(high) +
                     " (suffixes K, M, G)");
  };
  std::uint64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc()) wrong();
  std::string_view suffix(end, static_cast<std::size_t>(text.data() + text.size() - end));
  std::uint64_t unit = 1;
  if (!suffix.empty()) {
    constexpr std::string_view letters = "KMG";
    const char letter =
        suffix[0] >= 'a' && suffix[0] <= 'z' ? static_cast<char>(suffix[0] - 'a' + 'A') : suffix[0];
    const auto power = letters.find(letter);
    const std::string_view rest = suffix.substr(1);
    if (power == std::string_view::npos || !(rest.empty() || rest == "iB")) wrong();
    unit = std::uint64_t{1} << (10 * (power + 1));
  }
  if (value > high / unit || value * unit < low) wrong();
  return value * unit;
}

bool parse_switch(std::string_view text) {
  for (const std::string_view yes : {"yes", "true", "on", "1"}) {
    if (text == yes) return true;
  }
  for (const std::string_view no : {"no", "false", "off", "0"}) {
    if (text == no) return false;
  }
  refuse(text, "yes or no");
}

std::string bytes_to_text(std::uint64_t bytes) {
  for (const auto& [letter, unit] :
       {std::pair{'G', 1ull << 30}, {'M', 1ull << 20}, {'K', 1ull << 10}}) {
    if (bytes >= unit && bytes % unit == 0) return std::to_string(bytes / unit) + letter;
  }
  return std::to_string(bytes);
}

std::vector<std::string> nearest(std::string_view typed, const std::vector<std::string>& names) {
  std::vector<std::pair<std::size_t, std::string>> ranked;
  for (const std::string& name : names) {
    const std::size_t edits = name.starts_with(typed) ? 1 : edits_between(typed, name);
    if (edits <= std::max<std::size_t>(2, typed.size() / 3)) ranked.emplace_back(edits, name);
  }
  std::sort(ranked.begin(), ranked.end());
  std::vector<std::string> result;
  for (std::size_t i = 0; i < ranked.size() && i < 3; ++i) result.push_back(ranked[i].second);
  return result;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n\f\v";
  const auto first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

}  // namespace strata
