// SPDX-License-Identifier: Apache-2.0
// Numbers and names as people read them.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>

#include "apps/align/sequence.hpp"
#include "src/base/shortened.hpp"

namespace align {

/// 1,234,567
inline std::string grouped(std::int64_t n) {
  std::string digits = std::to_string(n < 0 ? -n : n);
  for (std::ptrdiff_t at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3) {
    digits.insert(static_cast<std::size_t>(at), 1, ',');
  }
  return n < 0 ? "-" + digits : digits;
}

/// "19.1 kb", "404 bases", "4.9 Mb"
inline std::string length_words(std::int64_t bases) {
  if (bases < 1000) return std::to_string(bases) + (bases == 1 ? " base" : " bases");
  char text[32];
  const double value = static_cast<double>(bases);
  if (bases < 1'000'000)
    std::snprintf(text, sizeof text, "%.1f kb", value / 1e3);
  else
    std::snprintf(text, sizeof text, "%.1f Mb", value / 1e6);
  return text;
}

/// "93.4%"; never rounds up to 100.
inline std::string percent(double fraction) {
  char text[16];
  std::snprintf(text, sizeof text, "%.1f%%", std::floor(fraction * 1000) / 10);
  return text;
}

/// What to call a sequence: its description up to the first comma, or its name; no longer than
/// says something.
inline std::string title(const sequence& s) {
  const std::string text = s.description.substr(0, s.description.find(','));
  return strata::brief(text.empty() ? s.name : text);
}

}  // namespace align
