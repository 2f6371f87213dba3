// SPDX-License-Identifier: Apache-2.0
#include "apps/mapview/upright.hpp"

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace mapview {
namespace {

// The part of a marker that is laid out like a TIFF file. What lies beyond its end reads as 0.
class tiff {
 public:
  explicit tiff(std::span<const std::uint8_t> bytes)
      : bytes_(bytes), little_(!bytes.empty() && bytes[0] == 'I') {}
  [[nodiscard]] std::uint32_t number(std::size_t at, std::size_t size) const {
    if (at + size > bytes_.size()) return 0;
    std::uint32_t n = 0;
    for (std::size_t i = 0; i < size; ++i) n = n << 8 | bytes_[at + (little_ ? size - 1 - i : i)];
    return n;
  }

 private:
  const std::span<const std::uint8_t> bytes_;
  const bool little_;
};

}  // namespace

unsigned orientation_in(std::span<const std::uint8_t> marker) {
  constexpr std::string_view name("Exif\0\0", 6);
  constexpr std::uint32_t orientation_tag = 274, short_type = 3, entry_bytes = 12;
  if (marker.size() < name.size() || !std::equal(name.begin(), name.end(), marker.begin()))
    return 1;
  const tiff t(marker.subspan(name.size()));
  const std::size_t first = t.number(4, 4);
  const std::uint32_t entries = t.number(first, 2);
  for (std::uint32_t i = 0; i < entries; ++i) {
    const std::size_t entry = first + 2 + std::size_t{i} * entry_bytes;
    if (t.number(entry, 2) != orientation_tag) continue;
    const std::uint32_t found = t.number(entry + 8, 2);
    return t.number(entry + 2, 2) == short_type && found >= 1 && found <= 8 ? found : 1;
  }
  return 1;
}

picture upright(picture as_stored, unsigned orientation) {
  if (orientation == 1) return as_stored;
  const picture& from = as_stored;
  const bool turned = orientation >= 5;
  // From which end the rows and columns of the file are read, going down and to the right, or the
  // other way where it is turned.
  const bool from_last_row =
      orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  const bool from_last_column =
      orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  picture p(turned ? from.height : from.width, turned ? from.width : from.height);
  for (std::uint32_t y = 0; y < p.height; ++y) {
    for (std::uint32_t x = 0; x < p.width; ++x) {
      const std::uint32_t row = turned ? x : y, column = turned ? y : x;
      std::copy_n(from.at(from_last_column ? from.width - 1 - column : column,
                          from_last_row ? from.height - 1 - row : row),
                  3, p.at(x, y));
    }
  }
  return p;
}

}  // namespace mapview
