// SPDX-License-Identifier: Apache-2.0
// A picture that would fill 3.4 GiB as pixels becomes a map in a fraction of that.
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "apps/mapview/map.hpp"
#include "apps/mapview/picture.hpp"
#include "mapview_fixture.hpp"
#include "picture_files.hpp"

namespace {

using namespace mapview;
using apps_test::outcome;
using apps_test::read_picture;
using apps_test::run_line;
using large_maps = apps_test::maps;

TEST_F(large_maps, need_memory_for_rows_of_tiles_and_not_for_the_picture) {
  constexpr std::uint32_t width = 40'000, height = 30'000, square = 1000, tile_height = 300;
  static_assert(std::uint64_t{width} * height > std::uint64_t{1} << 30);
  // Squares as on a chess board, a bit for each pixel.
  std::vector<std::uint8_t> rows[2];
  for (std::uint32_t phase = 0; phase < 2; ++phase) {
    for (std::uint32_t x = 0; x < width; x += 8)
      rows[phase].push_back(x / square % 2 == phase ? 0x00 : 0xFF);
  }
  apps_test::write_png(path("large.png"), {.width = width, .height = height, .bit_depth = 1},
                       [&](std::uint32_t y) { return rows[y / square % 2].data(); });
  const outcome made =
      run_line("mapview make " + path("map") + " --from " + path("large.png") + " --tile 4000x" +
               std::to_string(tile_height) + " --levels 4 --strata-workers 2");
  ASSERT_EQ(made.exit_code, 0) << made.err;
  constexpr long rows_kib = long{9} * width * tile_height / 1024, program_kib = 100 << 10;
  EXPECT_LT(made.peak_kib, rows_kib + program_kib);
  const map_info map = read_map(path("map"));
  EXPECT_EQ(map.width, width);
  EXPECT_EQ(map.height, height);
  // The lower right corner in its full size, and all of it from afar.
  const outcome corner = run_line(
      "mapview view " + path("map") +
      " --region 38000,28000,2000,2000 --window 2x2 --full-size --out " + path("corner.png"));
  ASSERT_EQ(corner.exit_code, 0) << corner.err;
  const outcome whole =
      run_line("mapview view " + path("map") + " --window 40x30 --out " + path("whole.png"));
  ASSERT_EQ(whole.exit_code, 0) << whole.err;
  const auto expect_board = [&](const picture& p, std::uint32_t across, std::uint32_t down) {
    ASSERT_EQ(p.width, across);
    ASSERT_EQ(p.height, down);
    for (std::uint32_t y = 0; y < down; ++y) {
      for (std::uint32_t x = 0; x < across; ++x)
        EXPECT_EQ(p.at(x, y)[1] > 127, (x + y) % 2 != 0) << x << " " << y;
    }
  };
  expect_board(read_picture(path("corner.png")), 2, 2);
  expect_board(read_picture(path("whole.png")), 40, 30);
}

}  // namespace
