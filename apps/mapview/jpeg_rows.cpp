// SPDX-License-Identifier: Apache-2.0
// libjpeg-turbo by lines, which its TurboJPEG interface does not offer. It reports errors by a
// function that must not return: ours leaves by longjmp, past frames without destructors.
#include <array>
#include <csetjmp>
#include <cstddef>
#include <cstdio>
// They need what is above.
#include <jpeglib.h>
#include <sys/stat.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "apps/mapview/file.hpp"
#include "apps/mapview/rows_of_file.hpp"
#include "apps/mapview/upright.hpp"

namespace mapview {
namespace {

class jpeg_rows final : public picture_rows {
 public:
  jpeg_rows(std::string path, open_file in) : path_(std::move(path)), in_(std::move(in)) {
    jpeg_.err = ::jpeg_std_error(&errors_);
    errors_.error_exit = &jpeg_rows::fail;
    errors_.emit_message = &jpeg_rows::hear;
    jpeg_.client_data = this;
    attempt([this] { jpeg_create_decompress(&jpeg_); });
    progress_.progress_monitor = &jpeg_rows::look_at_scans;
    jpeg_.progress = &progress_;
  }
  ~jpeg_rows() override { ::jpeg_destroy_decompress(&jpeg_); }

  void read_head() {
    attempt([this] {
      ::jpeg_stdio_src(&jpeg_, in_.get());
      // As much as the first directory takes; a file may have any number of them.
      ::jpeg_save_markers(&jpeg_, exif_marker, 1024);
      ::jpeg_read_header(&jpeg_, TRUE);
      has_four_colours_ = jpeg_.jpeg_color_space == JCS_CMYK || jpeg_.jpeg_color_space == JCS_YCCK;
      // That is as far as libjpeg goes.
      jpeg_.out_color_space = has_four_colours_ ? JCS_CMYK : JCS_RGB;
    });
  }
  [[nodiscard]] unsigned orientation() const {
    for (const jpeg_marker_struct* m = jpeg_.marker_list; m != nullptr; m = m->next) {
      const unsigned found = orientation_in({m->data, m->data_length});
      if (found != 1) return found;
    }
    return 1;
  }
  // Cyan, magenta, yellow and black, for printers.
  [[nodiscard]] bool has_four_colours() const { return has_four_colours_; }
  // What has gone through a pipe is gone.
  [[nodiscard]] bool can_be_read_again() const {
    struct stat about {};
    return ::fstat(::fileno(in_.get()), &about) == 0 && S_ISREG(about.st_mode);
  }
  [[nodiscard]] bool has_several_scans() { return ::jpeg_has_multiple_scans(&jpeg_) != FALSE; }

  size dimensions() const override { return {jpeg_.image_width, jpeg_.image_height}; }

  void read(std::uint8_t* rgb, std::uint32_t rows) override {
    if (rows == 0) return;  // after the last row libjpeg may not be called again
    if (has_four_colours_) four_.resize(std::size_t{4} * jpeg_.image_width);
    attempt([this, rgb, rows] {
      if (!started_) ::jpeg_start_decompress(&jpeg_);
      started_ = true;
      const std::size_t row_bytes = std::size_t{3} * jpeg_.output_width;
      for (std::uint32_t y = 0; y < rows; ++y) {
        JSAMPROW row = has_four_colours_ ? four_.data() : rgb + y * row_bytes;
        ::jpeg_read_scanlines(&jpeg_, &row, 1);
        if (has_four_colours_) print(rgb + y * row_bytes);
      }
      if (jpeg_.output_scanline == jpeg_.output_height) ::jpeg_finish_decompress(&jpeg_);
    });
  }

 private:
  static constexpr int exif_marker = JPEG_APP0 + 1;

  template <class Step>
  void attempt(Step step) {
    if (!completes(step)) refuse_picture(path_, why_.data());
  }
  template <class Step>
  bool completes(const Step& step) {
    if (setjmp(leave_) != 0) return false;
    step();
    return true;
  }

  // What light is left of a row by inks that each let some of it through; of no printer, which a
  // profile would tell. Adobe's programs, and with them nearly all others, write how much a pixel
  // lets through, and say that they do; else it is how much ink there is.
  void print(std::uint8_t* rgb) const {
    const auto light = [this](std::uint8_t value) -> unsigned {
      return jpeg_.saw_Adobe_marker != FALSE ? value : 255U - value;
    };
    for (std::size_t x = 0; x < jpeg_.output_width; ++x) {
      const unsigned black = light(four_[4 * x + 3]);
      for (std::size_t c = 0; c < 3; ++c)
        rgb[3 * x + c] = static_cast<std::uint8_t>((light(four_[4 * x + c]) * black + 127) / 255);
    }
  }

  [[noreturn]] static void fail(j_common_ptr jpeg) {
    auto* const self = static_cast<jpeg_rows*>(jpeg->client_data);
    self->errors_.format_message(jpeg, self->why_.data());
    std::longjmp(self->leave_, 1);
  }
  // A warning (-1) says that pixels are made up, as where the file ends too early.
  static void hear(j_common_ptr jpeg, int level) {
    if (level < 0) fail(jpeg);
  }

  // libjpeg calls it again and again. A scan of a few bytes takes as long as a picture does, and a
  // small file may have any number of them; those that are meant for eyes have some ten.
  static void look_at_scans(j_common_ptr jpeg) {
    constexpr int scans_max = 500;  // as TurboJPEG has it
    auto* const self = static_cast<jpeg_rows*>(jpeg->client_data);
    if (self->jpeg_.input_scan_number <= scans_max) return;
    std::snprintf(self->why_.data(), self->why_.size(), "it has more than %d scans", scans_max);
    std::longjmp(self->leave_, 1);
  }

  const std::string path_;
  const open_file in_;
  jpeg_error_mgr errors_{};
  jpeg_progress_mgr progress_{};
  jpeg_decompress_struct jpeg_{};
  bool started_ = false;
  bool has_four_colours_ = false;
  std::vector<std::uint8_t> four_;  // a row of them
  std::jmp_buf leave_{};
  std::array<char, JMSG_LENGTH_MAX> why_{};
};

}  // namespace

std::unique_ptr<picture_rows> open_jpeg_rows(const std::string& path, open_file in) {
  auto rows = std::make_unique<jpeg_rows>(path, std::move(in));
  rows->read_head();
  const unsigned orientation = rows->orientation();
  if (orientation == 1 && !rows->has_several_scans()) return rows;
  const auto [width, height] = rows->dimensions();
  if (std::uint64_t{width} * height > held_pixels_max) {
    if (rows->has_several_scans())
      refuse_held(path, "a JPEG of several scans (a progressive one)", "as baseline JPEG");
    refuse_held(path, "a JPEG that is to be turned (by its EXIF)", "upright");
  }
  // What libjpeg cannot give row by row it holds, too, in twice the memory.
  if (!rows->has_several_scans() || rows->has_four_colours() || !rows->can_be_read_again()) {
    if (orientation == 1) return rows;
    picture held(width, height);
    rows->read(held.rgb.data(), height);
    return rows_of(upright(std::move(held), orientation));
  }
  rows = nullptr;
  try {
    return rows_of(upright(decode_jpeg(read_file(path)), orientation));
  } catch (const picture_error& e) {
    refuse_picture(path, e.what());
  }
}

}  // namespace mapview
