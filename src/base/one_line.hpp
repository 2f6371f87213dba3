// SPDX-License-Identifier: Apache-2.0
// A message as one line of a terminal, whatever it quotes.
#pragma once
#include <cstdio>
#include <string>
#include <string_view>

namespace strata {

// The length of the UTF-8 character that `text` begins with; 0: there is none, or one that
// terminals take for a command.
inline std::size_t shown_as_it_is(std::string_view text) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return first >= ' ' && first != 0x7F ? 1 : 0;
  const std::size_t length = first >= 0xC2 && first < 0xE0   ? 2
                             : first >= 0xE0 && first < 0xF0 ? 3
                             : first >= 0xF0 && first < 0xF5 ? 4
                                                             : 0;
  if (length == 0 || length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  if (first == 0xC2 && byte(1) < 0xA0) return 0;  // the control characters beyond ASCII
  return length;
}

// Line ends and tabs become blanks, none at the end; other bytes that are no text "\x1B".
inline std::string one_line(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  std::string line;
  while (!text.empty()) {
    if (const std::size_t shown = shown_as_it_is(text); shown != 0) {
      line += text.substr(0, shown);
      text.remove_prefix(shown);
      continue;
    }
    const char c = text.front();
    if (c == '\n' || c == '\r' || c == '\t') {
      line += ' ';
    } else {
      char code[5];
      std::snprintf(code, sizeof code, "\\x%02X", static_cast<unsigned char>(c));
      line += code;
    }
    text.remove_prefix(1);
  }
  return line;
}

}  // namespace strata
