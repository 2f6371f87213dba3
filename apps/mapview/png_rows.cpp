// SPDX-License-Identifier: Apache-2.0
// libpng reports errors by longjmp, into a frame of ours. No frame between has a destructor.
#include <png.h>

#include <array>
#include <cerrno>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <new>
#include <utility>

#include "apps/mapview/map.hpp"
#include "apps/mapview/rows_of_file.hpp"

namespace mapview {
namespace {

class png_file {
 public:
  png_file(std::string path, open_file in) : path_(std::move(path)), in_(std::move(in)) {
    png_ = ::png_create_read_struct(PNG_LIBPNG_VER_STRING, this, &png_file::fail, &png_file::warn);
    if (png_ == nullptr) throw std::bad_alloc();
    info_ = ::png_create_info_struct(png_);
    if (info_ == nullptr) {
      ::png_destroy_read_struct(&png_, nullptr, nullptr);
      throw std::bad_alloc();
    }
  }
  ~png_file() { ::png_destroy_read_struct(&png_, &info_, nullptr); }
  png_file(const png_file&) = delete;
  png_file& operator=(const png_file&) = delete;

  void read_head() {
    attempt([this] {
      ::png_set_read_fn(png_, this, &png_file::fetch);
      ::png_set_user_limits(png_, map_side_max, map_side_max);
      ::png_read_info(png_, info_);
      const bool transparent = (::png_get_color_type(png_, info_) & PNG_COLOR_MASK_ALPHA) != 0 ||
                               ::png_get_valid(png_, info_, PNG_INFO_tRNS) != 0;
      ::png_set_expand(png_);
      ::png_set_scale_16(png_);
      ::png_set_gray_to_rgb(png_);
      ::png_set_alpha_mode_fixed(png_, PNG_ALPHA_PNG, PNG_DEFAULT_sRGB);
      if (transparent) {
        constexpr png_color_16 black{};
        ::png_set_background_fixed(png_, &black, PNG_BACKGROUND_GAMMA_SCREEN, 0, 0);
      }
      passes_ = ::png_set_interlace_handling(png_);
      ::png_read_update_info(png_, info_);
    });
    if (::png_get_rowbytes(png_, info_) != std::size_t{3} * dimensions().width)
      refuse_picture(path_, "pixels of an unknown form");
  }
  [[nodiscard]] size dimensions() const {
    return {::png_get_image_width(png_, info_), ::png_get_image_height(png_, info_)};
  }
  [[nodiscard]] int passes() const { return passes_; }
  [[nodiscard]] const std::string& path() const { return path_; }

  // Of an interlaced picture each pass adds to what the rows hold.
  void read(std::uint8_t* rgb, std::uint32_t rows) {
    attempt([this, rgb, rows] {
      const std::size_t row_bytes = std::size_t{3} * dimensions().width;
      for (std::uint32_t y = 0; y < rows; ++y) ::png_read_row(png_, rgb + y * row_bytes, nullptr);
    });
  }

 private:
  template <class Step>
  void attempt(Step step) {
    if (!completes(step)) refuse_picture(path_, why_.data());
  }
  template <class Step>
  bool completes(const Step& step) {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    step();
    return true;
  }

  static void fetch(png_structp png, png_bytep to, std::size_t bytes) {
    const auto* const self = static_cast<png_file*>(::png_get_io_ptr(png));
    if (std::fread(to, 1, bytes, self->in_.get()) == bytes) return;
    ::png_error(
        png, std::ferror(self->in_.get()) != 0 ? std::strerror(errno) : "the file ends too early");
  }
  [[noreturn]] static void fail(png_structp png, png_const_charp why) {
    auto* const self = static_cast<png_file*>(::png_get_error_ptr(png));
    std::snprintf(self->why_.data(), self->why_.size(), "%s", why);
    ::png_longjmp(png, 1);
  }
  static void warn(png_structp /*png*/, png_const_charp /*what*/) {}  // the pixels are right

  const std::string path_;
  const open_file in_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  int passes_ = 1;
  std::array<char, 200> why_{};
};

class png_rows final : public picture_rows {
 public:
  explicit png_rows(std::unique_ptr<png_file> file) : file_(std::move(file)) {}

  size dimensions() const override { return file_->dimensions(); }
  void read(std::uint8_t* rgb, std::uint32_t rows) override { file_->read(rgb, rows); }

 private:
  const std::unique_ptr<png_file> file_;
};

}  // namespace

std::unique_ptr<picture_rows> open_png_rows(const std::string& path, open_file in) {
  auto file = std::make_unique<png_file>(path, std::move(in));
  file->read_head();
  if (file->passes() == 1) return std::make_unique<png_rows>(std::move(file));
  const auto [width, height] = file->dimensions();
  if (std::uint64_t{width} * height > held_pixels_max)
    refuse_held(path, "an interlaced picture", "without interlacing");
  picture held(width, height);
  for (int pass = 0; pass < file->passes(); ++pass) file->read(held.rgb.data(), height);
  return rows_of(std::move(held));
}

}  // namespace mapview
