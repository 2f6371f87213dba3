// SPDX-License-Identifier: Apache-2.0
// Whole pictures in files, and kinds of PNG and JPEG that mapview reads and never writes.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "apps/mapview/picture.hpp"

namespace apps_test {

// As mapview reads it. Throws strata::user_error.
[[nodiscard]] mapview::picture read_picture(const std::string& path);
// As mapview writes it.
inline void write_picture(const std::string& path, const mapview::picture& p) {
  mapview::picture_file(path).write(p);
}

struct png_kind {
  std::uint32_t width = 0, height = 0;
  int bit_depth = 8;
  int colour_type = 0;  // PNG_COLOR_TYPE_*: that of RGB is 2
  bool interlaced = false;
};
// Writes row after row as libpng takes it from `row`, so that nobody holds the picture.
void write_png(const std::string& path, const png_kind& kind,
               const std::function<const std::uint8_t*(std::uint32_t y)>& row);
// Only what says so, and the beginning of pixels.
void write_png_head(const std::string& path, const png_kind& kind);

void write_interlaced(const std::string& path, const mapview::picture& p);
void write_progressive(const std::string& path, const mapview::picture& p);

// Cyan, magenta, yellow and black, as they are or as YCCK; adobe: with the mark that says that they
// are the other way round, as Adobe's programs write them.
struct ink_kind {
  bool as_ycck = false, adobe = true, progressive = false;
};
void write_four_colours(const std::string& path, const mapview::picture& p, ink_kind kind);

// A progressive JPEG in three colours or in four, the last of whose scans comes so often. Nothing
// is wrong with that: each brings the same coefficients, whole.
void write_scans(const std::string& path, const mapview::picture& p, int colours, int times);

}  // namespace apps_test
