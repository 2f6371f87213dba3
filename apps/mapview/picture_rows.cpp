// SPDX-License-Identifier: Apache-2.0
#include "apps/mapview/picture_rows.hpp"

#include <cerrno>
#include <cstring>
#include <strata/error.hpp>
#include <utility>

#include "apps/mapview/rows_of_file.hpp"

namespace mapview {
namespace {

class held_rows final : public picture_rows {
 public:
  explicit held_rows(picture held) : held_(std::move(held)) {}

  size dimensions() const override { return {held_.width, held_.height}; }
  void read(std::uint8_t* rgb, std::uint32_t rows) override {
    if (rows == 0) return;
    std::memcpy(rgb, held_.at(0, next_), std::size_t{3} * held_.width * rows);
    next_ += rows;
  }

 private:
  const picture held_;
  std::uint32_t next_ = 0;
};

}  // namespace

std::unique_ptr<picture_rows> open_rows(const std::string& path) {
  const picture_format format = format_of(path);
  open_file in(std::fopen(path.c_str(), "rbe"), &std::fclose);
  if (in == nullptr) throw strata::user_error(path + ": " + std::strerror(errno));
  return format == picture_format::jpeg ? open_jpeg_rows(path, std::move(in))
                                        : open_png_rows(path, std::move(in));
}

std::unique_ptr<picture_rows> rows_of(picture held) {
  return std::make_unique<held_rows>(std::move(held));
}

void refuse_picture(const std::string& path, const std::string& why) {
  throw strata::user_error(path + ": not a picture that can be read (" + why + ")");
}

void refuse_held(const std::string& path, const char* kind, const char* instead) {
  throw strata::user_error(path + ": " + kind + " of more than " + std::to_string(held_pixels_max) +
                           " pixels, which would have to be held whole; save it " + instead);
}

}  // namespace mapview
