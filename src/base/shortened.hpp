// SPDX-License-Identifier: Apache-2.0
// Text of others in messages for people: no longer than says something.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace strata {

// At most so many bytes, and no part of a character of UTF-8; what is cut ends in "...".
inline std::string shortened(std::string_view text, std::size_t bytes_max) {
  if (text.size() <= bytes_max) return std::string(text);
  constexpr std::string_view rest = "...";
  std::size_t n = bytes_max - rest.size();
  while (n != 0 && (static_cast<unsigned char>(text[n]) & 0xC0U) == 0x80U) --n;
  return std::string(text.substr(0, n)).append(rest);
}

// What somebody has written, such as the value of an option: in a message that quotes it, enough
// to know it again.
inline std::string brief(std::string_view text) {
  constexpr std::size_t quoted_bytes_max = 100;
  return shortened(text, quoted_bytes_max);
}
inline std::string in_quotes(std::string_view text) {
  return std::string(1, '\'').append(brief(text)).append(1, '\'');
}

// What a library says of arguments that it quotes.
inline std::string in_brief(std::string_view message) {
  constexpr std::size_t message_bytes_max = 1000;
  return shortened(message, message_bytes_max);
}

}  // namespace strata
