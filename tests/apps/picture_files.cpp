// SPDX-License-Identifier: Apache-2.0
#include "picture_files.hpp"

#include <png.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
// They need what is above.
#include <jpeglib.h>

#include "apps/mapview/picture_rows.hpp"

namespace apps_test {
namespace {

using file = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

file create(const std::string& path) {
  file out(std::fopen(path.c_str(), "wbe"), &std::fclose);
  if (out == nullptr) throw std::runtime_error("cannot write " + path);
  return out;
}

// Errors end the test, by libpng's own handler.
class png_output {
 public:
  png_output(const std::string& path, const png_kind& kind) : out_(create(path)) {
    png_ = ::png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, &png_output::fail, nullptr);
    info_ = ::png_create_info_struct(png_);
    ::png_init_io(png_, out_.get());
    ::png_set_user_limits(png_, 0x7FFFFFFF, 0x7FFFFFFF);
    ::png_set_compression_level(png_, 1);
    ::png_set_filter(png_, 0, PNG_FILTER_NONE);
    ::png_set_IHDR(png_, info_, kind.width, kind.height, kind.bit_depth, kind.colour_type,
                   kind.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
                   PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    ::png_write_info(png_, info_);
  }
  ~png_output() { ::png_destroy_write_struct(&png_, &info_); }
  png_output(const png_output&) = delete;
  png_output& operator=(const png_output&) = delete;

  png_structp png() { return png_; }

 private:
  [[noreturn]] static void fail(png_structp /*png*/, png_const_charp why) {
    std::fprintf(stderr, "libpng: %s\n", why);
    std::abort();
  }

  const file out_;
  png_structp png_;
  png_infop info_;
};

}  // namespace

mapview::picture read_picture(const std::string& path) {
  const std::unique_ptr<mapview::picture_rows> rows = mapview::open_rows(path);
  mapview::picture p(rows->dimensions().width, rows->dimensions().height);
  rows->read(p.rgb.data(), p.height);
  return p;
}

void write_png(const std::string& path, const png_kind& kind,
               const std::function<const std::uint8_t*(std::uint32_t y)>& row) {
  png_output out(path, kind);
  const int passes = ::png_set_interlace_handling(out.png());
  for (int pass = 0; pass < passes; ++pass) {
    for (std::uint32_t y = 0; y < kind.height; ++y) ::png_write_row(out.png(), row(y));
  }
  ::png_write_end(out.png(), nullptr);
}

void write_png_head(const std::string& path, const png_kind& kind) {
  png_output out(path, kind);
  constexpr png_byte name[] = {'I', 'D', 'A', 'T', 0}, pixels[100] = {};
  ::png_write_chunk(out.png(), name, pixels, sizeof pixels);
}

void write_interlaced(const std::string& path, const mapview::picture& p) {
  write_png(
      path,
      {.width = p.width, .height = p.height, .colour_type = PNG_COLOR_TYPE_RGB, .interlaced = true},
      [&](std::uint32_t y) { return p.at(0, y); });
}

namespace {

// As `compress` has set it up, row by row; errors end the test.
template <class Setup, class Row>
void write_jpeg(const std::string& path, std::uint32_t width, std::uint32_t height,
                const Setup& setup, const Row& row_at) {
  const file out = create(path);
  jpeg_error_mgr errors{};
  jpeg_compress_struct jpeg{};
  jpeg.err = ::jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  ::jpeg_stdio_dest(&jpeg, out.get());
  jpeg.image_width = width;
  jpeg.image_height = height;
  setup(jpeg);
  ::jpeg_start_compress(&jpeg, TRUE);
  for (std::uint32_t y = 0; y < height; ++y) {
    std::vector<std::uint8_t> copy = row_at(y);
    JSAMPROW row = copy.data();
    ::jpeg_write_scanlines(&jpeg, &row, 1);
  }
  ::jpeg_finish_compress(&jpeg);
  ::jpeg_destroy_compress(&jpeg);
}

}  // namespace

void write_progressive(const std::string& path, const mapview::picture& p) {
  write_jpeg(
      path, p.width, p.height,
      [](jpeg_compress_struct& jpeg) {
        jpeg.input_components = 3;
        jpeg.in_color_space = JCS_RGB;
        ::jpeg_set_defaults(&jpeg);
        ::jpeg_set_quality(&jpeg, 90, TRUE);
        ::jpeg_simple_progression(&jpeg);
      },
      [&](std::uint32_t y) {
        return std::vector<std::uint8_t>(p.at(0, y), p.at(0, y) + std::size_t{3} * p.width);
      });
}

void write_four_colours(const std::string& path, const mapview::picture& p, ink_kind kind) {
  write_jpeg(
      path, p.width, p.height,
      [&](jpeg_compress_struct& jpeg) {
        jpeg.input_components = 4;
        jpeg.in_color_space = JCS_CMYK;
        ::jpeg_set_defaults(&jpeg);
        ::jpeg_set_quality(&jpeg, 100, TRUE);
        ::jpeg_set_colorspace(&jpeg, kind.as_ycck ? JCS_YCCK : JCS_CMYK);
        for (int c = 0; c < 4; ++c)
          jpeg.comp_info[c].h_samp_factor = jpeg.comp_info[c].v_samp_factor = 1;
        jpeg.write_Adobe_marker = kind.adobe ? TRUE : FALSE;
        if (kind.progressive) ::jpeg_simple_progression(&jpeg);
      },
      [&](std::uint32_t y) {
        std::vector<std::uint8_t> inks;
        for (std::uint32_t x = 0; x < p.width; ++x) {
          const std::uint8_t* const rgb = p.at(x, y);
          // Half of what the darkest colour needs as black, the rest of each as its ink.
          const unsigned most = std::max({rgb[0], rgb[1], rgb[2]});
          const unsigned black = (255 + most) / 2;
          for (int c = 0; c < 4; ++c) {
            const unsigned light = c == 3 ? black : (255U * rgb[c] + black / 2) / black;
            inks.push_back(static_cast<std::uint8_t>(kind.adobe ? light : 255 - light));
          }
        }
        return inks;
      });
}

}  // namespace apps_test
