// SPDX-License-Identifier: Apache-2.0
#include "picture_files.hpp"

#include <png.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
// They need what is above.
#include <jpeglib.h>

#include "apps/mapview/file.hpp"
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

// As `setup` has it, row by row; errors end the test.
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

void write_colours(const std::string& path, const mapview::picture& p,
                   const std::function<void(jpeg_compress_struct&)>& in_scans) {
  write_jpeg(
      path, p.width, p.height,
      [&](jpeg_compress_struct& jpeg) {
        jpeg.input_components = 3;
        jpeg.in_color_space = JCS_RGB;
        ::jpeg_set_defaults(&jpeg);
        ::jpeg_set_quality(&jpeg, 90, TRUE);
        in_scans(jpeg);
      },
      [&](std::uint32_t y) {
        return std::vector<std::uint8_t>(p.at(0, y), p.at(0, y) + std::size_t{3} * p.width);
      });
}

}  // namespace

void write_progressive(const std::string& path, const mapview::picture& p) {
  write_colours(path, p, [](jpeg_compress_struct& jpeg) { ::jpeg_simple_progression(&jpeg); });
}

namespace {

void write_inks(const std::string& path, const mapview::picture& p, ink_kind kind,
                const std::function<void(jpeg_compress_struct&)>& in_scans) {
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
        if (kind.progressive) in_scans(jpeg);
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

}  // namespace

void write_four_colours(const std::string& path, const mapview::picture& p, ink_kind kind) {
  write_inks(path, p, kind, [](jpeg_compress_struct& jpeg) { ::jpeg_simple_progression(&jpeg); });
}

void write_scans(const std::string& path, const mapview::picture& p, int colours, int times) {
  // First what is constant in a block, of all colours; then what is not, of one after the other.
  std::vector<jpeg_scan_info> scans{{colours, {0, 1, 2, 3}, 0, 0, 0, 0}};
  for (int c = 0; c < colours; ++c) scans.push_back({1, {c, 0, 0, 0}, 1, 63, 0, 0});
  const auto in_scans = [&](jpeg_compress_struct& jpeg) {
    jpeg.scan_info = scans.data();
    jpeg.num_scans = static_cast<int>(scans.size());
  };
  if (colours == 4)
    write_inks(path, p, {.progressive = true}, in_scans);
  else
    write_colours(path, p, in_scans);
  std::vector<unsigned char> bytes = mapview::read_file(path);
  // A scan begins with a mark and ends with the one of the picture's end, two bytes each.
  const std::array<unsigned char, 2> scan{0xFF, 0xDA};
  const auto last = std::find_end(bytes.begin(), bytes.end(), scan.begin(), scan.end());
  const std::vector<unsigned char> again(last, bytes.end() - 2);
  const file out = create(path);
  std::fwrite(bytes.data(), 1, bytes.size() - 2, out.get());
  for (int i = 1; i < times; ++i) std::fwrite(again.data(), 1, again.size(), out.get());
  std::fwrite(&bytes[bytes.size() - 2], 1, 2, out.get());
}

}  // namespace apps_test
