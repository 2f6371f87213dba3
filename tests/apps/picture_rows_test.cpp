// SPDX-License-Identifier: Apache-2.0
// Pictures that are read row by row.
#include "apps/mapview/picture_rows.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <png.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <strata/error.hpp>
#include <string>
#include <thread>
#include <vector>

#include "apps/mapview/file.hpp"
#include "apps/mapview/terrain.hpp"
#include "mapview_fixture.hpp"
#include "picture_files.hpp"

namespace {

using namespace mapview;
using apps_test::png_kind;
using apps_test::read_picture;
using apps_test::write_picture;
namespace fs = std::filesystem;
using rows_of_pictures = apps_test::maps;

picture some_terrain() { return draw_terrain(301, 203, {0, 0, 301, 203}); }

TEST_F(rows_of_pictures, are_those_of_the_whole) {
  const picture p = some_terrain();
  write_picture(path("plain.png"), p);
  apps_test::write_interlaced(path("interlaced.png"), p);
  write_picture(path("plain.jpg"), p);
  apps_test::write_progressive(path("progressive.jpeg"), p);
  for (const std::string name : {"plain.png", "interlaced.png", "plain.jpg", "progressive.jpeg"}) {
    const picture whole =
        name.find("png") != std::string::npos ? p : decode_jpeg(read_file(path(name)));
    const std::unique_ptr<picture_rows> rows = open_rows(path(name));
    ASSERT_EQ(rows->dimensions().width, p.width) << name;
    ASSERT_EQ(rows->dimensions().height, p.height) << name;
    picture q(p.width, p.height);
    std::uint32_t y = 0;
    for (const std::uint32_t some : {1U, 0U, 15U, 96U, 91U, 0U}) {
      rows->read(y < p.height ? q.at(0, y) : nullptr, some);
      y += some;
    }
    ASSERT_EQ(y, p.height);
    EXPECT_TRUE(q.rgb == whole.rgb) << name;
  }
}

TEST_F(rows_of_pictures, of_every_kind_of_png_have_eight_bits_of_three_colours) {
  using pixels = std::vector<std::uint8_t>;
  const auto read = [&](int bit_depth, int colour_type, const pixels& row) {
    apps_test::write_png(
        path("k.png"),
        {.width = 2, .height = 1, .bit_depth = bit_depth, .colour_type = colour_type},
        [&](std::uint32_t) { return row.data(); });
    return read_picture(path("k.png")).rgb;
  };
  EXPECT_EQ(read(1, PNG_COLOR_TYPE_GRAY, {0x40}), (pixels{0, 0, 0, 255, 255, 255}));
  EXPECT_EQ(read(8, PNG_COLOR_TYPE_GRAY, {7, 200}), (pixels{7, 7, 7, 200, 200, 200}));
  EXPECT_EQ(read(16, PNG_COLOR_TYPE_GRAY, {9, 9, 70, 70}), (pixels{9, 9, 9, 70, 70, 70}));
  EXPECT_EQ(read(16, PNG_COLOR_TYPE_RGB, {1, 1, 2, 2, 3, 3, 128, 128, 0, 0, 255, 255}),
            (pixels{1, 2, 3, 128, 0, 255}));
  EXPECT_EQ(read(8, PNG_COLOR_TYPE_RGBA, {10, 20, 30, 255, 40, 50, 60, 0}),
            (pixels{10, 20, 30, 0, 0, 0}))
      << "on black";
  EXPECT_EQ(read(8, PNG_COLOR_TYPE_GRAY_ALPHA, {10, 255, 99, 0}), (pixels{10, 10, 10, 0, 0, 0}));
}

// A JPEG with what a camera says of how it was held behind its first two bytes.
void write_held(const std::string& path, const std::string& jpeg, const std::string& exif) {
  const std::string marker = std::string("Exif\0\0", 6) + exif;
  const std::size_t size = marker.size() + 2;
  std::ofstream(path, std::ios::binary)
      << jpeg.substr(0, 2) << "\xFF\xE1" << static_cast<char>(size >> 8)
      << static_cast<char>(size & 255) << marker << jpeg.substr(2);
}

// One entry before that of the orientation.
std::string exif_of(unsigned orientation, bool little, unsigned type = 3) {
  std::string bytes = little ? "II" : "MM";
  const auto put = [&](std::uint32_t n, unsigned size) {
    for (unsigned i = 0; i < size; ++i)
      bytes += static_cast<char>(n >> 8 * (little ? i : size - 1 - i));
  };
  put(42, 2);
  put(8, 4);
  put(2, 2);
  for (const unsigned tag : {256U, 274U}) {
    put(tag, 2);
    put(type, 2);
    put(1, 4);
    put(orientation, 2);
    put(0, 2);
  }
  put(0, 4);
  return bytes;
}

std::string bytes_of(const std::string& path) {
  const std::vector<unsigned char> all = read_file(path);
  return {all.begin(), all.end()};
}

// The sides on which EXIF wants the file's first row and its first column.
TEST_F(rows_of_pictures, are_turned_as_the_camera_was_held) {
  enum side { top, bottom, left, right };
  struct held {
    side row, column;
  };
  constexpr held all[] = {{top, left}, {top, right}, {bottom, right}, {bottom, left},
                          {left, top}, {right, top}, {right, bottom}, {left, bottom}};
  const picture p = draw_terrain(67, 35, {0, 0, 67, 35});
  write_picture(path("plain.jpg"), p);
  apps_test::write_progressive(path("progressive.jpg"), p);
  for (const char* const name : {"plain.jpg", "progressive.jpg"}) {
    const std::string jpeg = bytes_of(path(name));
    const picture stored = read_picture(path(name));
    for (unsigned i = 0; i < std::size(all); ++i) {
      write_held(path("held.jpg"), jpeg, exif_of(i + 1, i % 2 == 0));
      const picture q = read_picture(path("held.jpg"));
      const bool turned = all[i].row == left || all[i].row == right;
      ASSERT_EQ(q.width, turned ? p.height : p.width) << i + 1;
      ASSERT_EQ(q.height, turned ? p.width : p.height) << i + 1;
      unsigned wrong = 0;
      for (std::uint32_t row = 0; row < p.height; ++row) {
        for (std::uint32_t column = 0; column < p.width; ++column) {
          std::uint32_t x = 0, y = 0;
          const auto place = [&](side s, std::uint32_t at) {
            (s == top || s == bottom ? y : x) = s == top || s == left ? at
                                                : s == bottom         ? q.height - 1 - at
                                                                      : q.width - 1 - at;
          };
          place(all[i].row, row);
          place(all[i].column, column);
          wrong += std::equal(q.at(x, y), q.at(x, y) + 3, stored.at(column, row)) ? 0 : 1;
        }
      }
      EXPECT_EQ(wrong, 0U) << name << ", held as " << i + 1;
    }
  }
}

TEST_F(rows_of_pictures, stay_as_they_are_where_exif_makes_no_sense) {
  const picture p = draw_terrain(67, 35, {0, 0, 67, 35});
  write_picture(path("plain.jpg"), p);
  const std::string jpeg = bytes_of(path("plain.jpg")), good = exif_of(6, true);
  std::vector<std::string> bad{exif_of(0, true),
                               exif_of(9, false),
                               exif_of(6, true, 4),
                               "",
                               std::string("MM\0*\xFF\xFF\xFF\xFF", 8),
                               std::string("MM\0*\0\0\0\x08\xFF\xFF", 10)};
  for (std::size_t size = 1; size < good.size() - 6; ++size) bad.push_back(good.substr(0, size));
  for (const std::string& exif : bad) {
    write_held(path("held.jpg"), jpeg, exif);
    EXPECT_EQ(open_rows(path("held.jpg"))->dimensions().width, p.width) << exif.size();
  }
}

TEST_F(rows_of_pictures, in_four_colours_become_the_light_that_their_inks_leave) {
  const picture p = some_terrain();
  for (const apps_test::ink_kind kind :
       {apps_test::ink_kind{}, {.as_ycck = true}, {.adobe = false}, {.progressive = true}}) {
    const std::string name = path("inks.jpg");
    apps_test::write_four_colours(name, p, kind);
    const picture q = read_picture(name);
    ASSERT_EQ(q.rgb.size(), p.rgb.size());
    double sum = 0;
    for (std::size_t i = 0; i < p.rgb.size(); ++i) sum += std::abs(p.rgb[i] - q.rgb[i]);
    EXPECT_LT(sum / static_cast<double>(p.rgb.size()), 2)
        << kind.as_ycck << kind.adobe << kind.progressive;
  }
}

// What has been read of it cannot be read again, whatever the order of its pixels.
TEST_F(rows_of_pictures, come_through_a_pipe) {
  const picture p = draw_terrain(101, 67, {0, 0, 101, 67});  // a pipe takes all of it at once
  write_picture(path("plain.jpg"), p);
  apps_test::write_progressive(path("progressive.jpg"), p);
  apps_test::write_interlaced(path("interlaced.png"), p);
  for (const std::string name : {"plain.jpg", "progressive.jpg", "interlaced.png"}) {
    const std::vector<unsigned char> bytes = read_file(path(name));
    const std::string pipe = path("pipe_" + name);
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    std::atomic<bool> is_read = false;
    std::thread writer([&] {
      std::ofstream(pipe, std::ios::binary)
          .write(reinterpret_cast<const char*>(bytes.data()),
                 static_cast<std::streamsize>(bytes.size()));
      // Whoever opens it again finds nothing, instead of waiting for ever.
      while (!is_read) {
        const int fd = ::open(pipe.c_str(), O_WRONLY | O_NONBLOCK);
        if (fd >= 0) ::close(fd);
        std::this_thread::yield();
      }
    });
    std::vector<std::uint8_t> rgb;
    try {
      rgb = read_picture(pipe).rgb;
    } catch (const strata::user_error& e) {
      ADD_FAILURE() << e.what();
    }
    is_read = true;
    writer.join();
    EXPECT_TRUE(rgb == read_picture(path(name)).rgb) << name;
  }
}

// The error of opening such a file, or of reading all of it.
std::string refusal(const std::string& path) {
  try {
    (void)read_picture(path);
  } catch (const strata::user_error& e) {
    return e.what();
  }
  return "none";
}

TEST_F(rows_of_pictures, that_must_be_held_whole_are_refused_where_they_are_too_large) {
  apps_test::write_png_head(
      path("large.png"),
      {.width = 40'000, .height = 30'000, .colour_type = PNG_COLOR_TYPE_RGB, .interlaced = true});
  EXPECT_NE(refusal(path("large.png")).find("without interlacing"), std::string::npos)
      << refusal(path("large.png"));
  apps_test::write_progressive(path("large.jpg"), some_terrain());
  std::vector<unsigned char> bytes = read_file(path("large.jpg"));
  const std::array<unsigned char, 2> begins{0xFF, 0xC2};  // of a frame of several scans
  const auto frame = std::search(bytes.begin(), bytes.end(), begins.begin(), begins.end());
  ASSERT_LT(frame + 8, bytes.end());
  frame[5] = 30'000 / 256, frame[6] = 30'000 % 256, frame[7] = 40'000 / 256,
  frame[8] = 40'000 % 256;
  std::ofstream(path("large.jpg"), std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  EXPECT_NE(refusal(path("large.jpg")).find("as baseline JPEG"), std::string::npos)
      << refusal(path("large.jpg"));
}

// A file of a few kilobytes could keep a processor busy for hours.
TEST_F(rows_of_pictures, of_any_number_of_scans_are_refused_and_of_some_are_read) {
  const picture p = some_terrain();
  for (const int colours : {3, 4}) {
    const std::string once = path("once.jpg"), often = path("often.jpg");
    apps_test::write_scans(once, p, colours, 1);
    apps_test::write_scans(often, p, colours, 10);
    EXPECT_TRUE(read_picture(often).rgb == read_picture(once).rgb) << colours;
    apps_test::write_scans(often, p, colours, 600);
    EXPECT_NE(refusal(often).find("more than 500 scans"), std::string::npos) << refusal(often);
    if (colours != 3) continue;  // those are not decoded otherwise
    EXPECT_THROW((void)decode_jpeg(read_file(often)), picture_error);
  }
}

TEST_F(rows_of_pictures, that_are_none_say_why_in_one_line) {
  std::ofstream(path("text.png")) << "no picture";
  std::ofstream(path("text.jpg")) << "no picture";
  std::ofstream(path("empty.png"));
  std::ofstream(path("empty.jpg"));
  fs::create_directory(path("folder.png"));
  apps_test::write_png_head(path("wide.png"), {.width = 20'000'000, .height = 1});
  for (const std::string name : {"text.png", "text.jpg", "empty.png", "empty.jpg", "folder.png",
                                 "wide.png", "none.png", "a.bmp"}) {
    const std::string why = refusal(path(name));
    EXPECT_NE(why.find(path(name)), std::string::npos) << why;
    EXPECT_EQ(why.find('\n'), std::string::npos) << why;
  }
}

}  // namespace
