// SPDX-License-Identifier: Apache-2.0
// Pictures in memory, as JPEG and as PNG. libjpeg-turbo and libpng do the work.
#pragma once
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "apps/common/output_file.hpp"

namespace mapview {

struct picture {
  std::uint32_t width = 0, height = 0;
  std::vector<std::uint8_t> rgb;  // row by row, three bytes a pixel

  picture() = default;
  picture(std::uint32_t w, std::uint32_t h) : width(w), height(h), rgb(std::size_t{3} * w * h) {}
  [[nodiscard]] std::uint8_t* at(std::uint32_t x, std::uint32_t y) {
    return &rgb[(std::size_t{y} * width + x) * 3];
  }
  [[nodiscard]] const std::uint8_t* at(std::uint32_t x, std::uint32_t y) const {
    return &rgb[(std::size_t{y} * width + x) * 3];
  }
};

// Bytes that are not a picture.
class picture_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The picture in a JPEG file, made smaller while it is decoded (by eighths) as long as it keeps at
// least `scale` of its size. Throws picture_error; also when it has another size than `expected`
// (width, height), if that is given, or more than 500 scans.
struct size {
  std::uint32_t width = 0, height = 0;
};
[[nodiscard]] picture decode_jpeg(std::span<const unsigned char> file, double scale = 1,
                                  size expected = {});
[[nodiscard]] std::vector<unsigned char> encode_jpeg(const picture& p, int quality);
[[nodiscard]] std::vector<unsigned char> encode_png(const picture& p);

// By the name's end. Throws strata::user_error where it is neither .jpg (or .jpeg) nor .png.
enum class picture_format { jpeg, png };
[[nodiscard]] picture_format format_of(const std::string& path);

// Takes its name, and finds out whether it can be written, before there is a picture. Throws
// strata::user_error: it cannot, or the name ends neither in .jpg nor in .png.
class picture_file {
 public:
  explicit picture_file(const std::string& path) : format_(format_of(path)), out_(path) {}
  // Once. The file appears whole or not at all.
  void write(const picture& p);

 private:
  const picture_format format_;
  apps::output_file out_;
};

}  // namespace mapview
