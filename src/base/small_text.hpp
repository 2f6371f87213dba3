// SPDX-License-Identifier: Apache-2.0
// Files that somebody has typed: a wrong name may lead to one without an end, such as a device.
#pragma once
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

#include "strata/error.hpp"

namespace strata {

// The text of the file, `what` for people, without the mark of UTF-8 that some editors put first.
// Throws user_error where it cannot be read, is longer than anybody types, or is no text.
inline std::istringstream open_small_text(const std::string& path, const std::string& what) {
  constexpr std::size_t bytes_max = std::size_t{1} << 20;
  std::string text(bytes_max + 1, '\0');
  errno = 0;
  std::ifstream in(path);
  if (in) in.read(text.data(), static_cast<std::streamsize>(text.size()));
  // A directory opens and then cannot be read.
  if (!in.is_open() || in.bad()) {
    const int code = errno;
    throw user_error("cannot read " + what + " " + path +
                     (code != 0 ? std::string(": ") + std::strerror(code) : std::string()));
  }
  text.resize(static_cast<std::size_t>(in.gcount()));
  if (text.size() > bytes_max)
    throw user_error(path + " is longer than 1 MiB: " + what + " is a text of some lines");
  // It would end the message that quotes it.
  if (text.find('\0') != std::string::npos)
    throw user_error(path + " has bytes of 0 in it: " + what + " is a text of some lines");
  constexpr std::string_view utf8_mark = "\xEF\xBB\xBF";
  if (text.starts_with(utf8_mark)) text.erase(0, utf8_mark.size());
  return std::istringstream(std::move(text));
}

}  // namespace strata
