// SPDX-License-Identifier: Apache-2.0
// Files that somebody has typed: a wrong name may lead to one without an end, such as a device.
#pragma once
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>

#include "strata/error.hpp"

namespace strata {

// The text of the file, `what` for people. Throws user_error where it cannot be read, or is longer
// than anybody types.
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
  return std::istringstream(std::move(text));
}

}  // namespace strata
