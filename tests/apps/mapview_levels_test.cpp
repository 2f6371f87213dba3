// SPDX-License-Identifier: Apache-2.0
// Maps with smaller copies of themselves.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <strata/error.hpp>
#include <strata/runtime.hpp>
#include <string>
#include <utility>
#include <vector>

#include "apps/mapview/make.hpp"
#include "apps/mapview/missing_tiles.hpp"
#include "apps/mapview/scaling.hpp"
#include "http_client.hpp"
#include "mapview_fixture.hpp"
#include "mapview_views.hpp"
#include "picture_files.hpp"
#include "running_program.hpp"
#include "tests/common/sampled.hpp"

namespace {

using namespace mapview;
using apps_test::any_view;
using apps_test::get;
using apps_test::outcome;
using apps_test::read_picture;
using apps_test::reply;
using apps_test::run_line;
using apps_test::running;
using apps_test::write_picture;
using nlohmann::json;
namespace fs = std::filesystem;

map_info any_map(std::mt19937& random) {
  map_info map;
  map.width = 1 + random() % 3000;
  map.height = 1 + random() % 3000;
  map.tile_width = 16 + random() % 100;
  map.tile_height = 16 + random() % 100;
  map.levels = last_level(map);
  return map;
}

TEST(map_levels, go_down_to_a_single_tile_where_a_map_is_large) {
  EXPECT_EQ(usual_levels({}), 0U) << "the paper's map";
  map_info map{.width = 32'768, .height = 32'768};
  EXPECT_EQ(usual_levels(map), 7U);
  EXPECT_EQ(map.tiles(7), 1U);
  EXPECT_EQ(map.tiles(6), 2U);  // of 512 x 512 pixels
  // 1000 tiles and one more.
  map = {.width = 6400, .height = 480 * 100};
  EXPECT_EQ(map.tiles(), tiles_without_levels_max);
  EXPECT_EQ(usual_levels(map), 0U);
  ++map.height;
  EXPECT_EQ(usual_levels(map), 7U);
}

TEST(map_levels, have_at_least_the_pixels_of_the_window_and_less_than_twice_as_many) {
  std::mt19937 random(7);
  std::set<std::uint32_t> chosen;
  for (int i = 0; i < 3000; ++i) {
    const map_info map = any_map(random);
    const view v = any_view(random, map);
    const std::uint32_t level = level_for(map, v);
    ASSERT_LE(level, map.levels);
    chosen.insert(level);
    const auto pixels = [&](std::uint32_t length, std::uint32_t at) {
      return std::ldexp(length, -static_cast<int>(at));
    };
    if (level > 0) {
      ASSERT_GE(pixels(v.region.width, level), v.width);
      ASSERT_GE(pixels(v.region.height, level), v.height);
    }
    if (level < map.levels) {
      ASSERT_TRUE(pixels(v.region.width, level + 1) < v.width ||
                  pixels(v.region.height, level + 1) < v.height);
    }
  }
  EXPECT_GE(chosen.size(), 5U);
  // The squares that the page asks for.
  const map_info map{.width = 40'000, .height = 30'000, .levels = 6};
  for (std::uint32_t level = 0; level <= 6; ++level)
    EXPECT_EQ(level_for(map, {{0, 512U << level, 512U << level, 512U << level}, 512, 512}), level);
}

TEST(map_levels, cover_the_window_once_and_each_tile_what_those_below_it_cover) {
  std::mt19937 random(8);
  for (int i = 0; i < strata::test::sampled(200, 50); ++i) {
    const map_info map = any_map(random);
    const view v = any_view(random, map);
    const std::uint32_t level = random() % (map.levels + 1);
    const tile_grid grid = grid_of(map, v.region, level);
    std::vector<int> covered(std::size_t{v.width} * v.height);
    const auto cover = [&](const rectangle& p, int by) {
      for (std::uint32_t y = p.y; y < p.y + p.height; ++y) {
        for (std::uint32_t x = p.x; x < p.x + p.width; ++x)
          covered[std::size_t{y} * v.width + x] += by;
      }
    };
    for (std::uint32_t k = 0; k < grid.size(); ++k) {
      const tile_place tile = grid.at(k);
      ASSERT_TRUE(grid.contains(tile));
      ASSERT_EQ(grid.number_of(tile), k);
      ASSERT_LT(tile.column, map.columns(level));
      ASSERT_LT(tile.row, map.rows(level));
      cover(pixels_of(map, v, tile), 1);
      if (level == 0) continue;
      const tile_grid below = grid_of(map, map.area_of(tile), level - 1);
      ASSERT_LE(below.columns, 2U);
      ASSERT_LE(below.rows, 2U);
      for (std::uint32_t b = 0; b < below.size(); ++b) cover(pixels_of(map, v, below.at(b)), 1);
      cover(pixels_of(map, v, tile), -1);
    }
    for (const int c : covered) ASSERT_EQ(c, 1) << i;
  }
}

TEST(map_levels, are_means_of_all_that_a_pixel_covers) {
  std::mt19937 random(9);
  for (int round = 0; round < 20; ++round) {
    const picture full(1 + random() % 150, 1 + random() % 120);
    picture level = full;
    for (std::uint8_t& b : level.rgb) b = static_cast<std::uint8_t>(random());
    const picture source = level;
    for (std::uint32_t n = 1; level.width > 1 || level.height > 1; ++n) {
      const auto last = [&](std::uint32_t length) {
        const std::uint32_t rest = length % (1U << (n - 1));
        return rest == 0 ? 1.0 : double{1} * rest / (1U << (n - 1));
      };
      picture next((level.width + 1) / 2 + 3, (level.height + 1) / 2 + 2);
      draw_halved(level, last(full.width), last(full.height), next, 3, 2);
      EXPECT_EQ(next.at(2, next.height - 1)[0], 0) << "outside";
      picture inside(next.width - 3, next.height - 2);
      for (std::uint32_t y = 0; y < inside.height; ++y)
        std::copy_n(next.at(3, y + 2), std::size_t{3} * inside.width, inside.at(0, y));
      level = inside;
      for (std::uint32_t y = 0; y < level.height; ++y) {
        for (std::uint32_t x = 0; x < level.width; ++x) {
          double sum = 0, count = 0;
          for (std::uint32_t v = y << n; v < std::min((y + 1) << n, full.height); ++v) {
            for (std::uint32_t u = x << n; u < std::min((x + 1) << n, full.width); ++u) {
              sum += source.at(u, v)[1];
              ++count;
            }
          }
          // Each halving rounds.
          ASSERT_NEAR(level.at(x, y)[1], sum / count, 0.51 * n) << round << " " << n;
        }
      }
    }
  }
}

TEST(map_levels, are_neither_lighter_nor_darker) {
  std::mt19937 random(10);
  picture p(512, 512);
  for (std::uint8_t& b : p.rgb) b = static_cast<std::uint8_t>(random());
  const auto mean = [](const picture& of) {
    double sum = 0;
    for (const std::uint8_t b : of.rgb) sum += b;
    return sum / static_cast<double>(of.rgb.size());
  };
  const double before = mean(p);
  for (int n = 0; n < 4; ++n) {
    picture half(p.width / 2, p.height / 2);
    draw_halved(p, 1, 1, half, 0, 0);
    p = half;
  }
  EXPECT_NEAR(mean(p), before, 0.1);
}

// How far two pictures are apart, in 255ths.
struct difference {
  int most = 0;
  double mean = 0, bias = 0;
};
difference between(const picture& a, const picture& b) {
  EXPECT_EQ(a.rgb.size(), b.rgb.size());
  difference d;
  for (std::size_t i = 0; i < std::min(a.rgb.size(), b.rgb.size()); ++i) {
    const int by = a.rgb[i] - b.rgb[i];
    d.most = std::max(d.most, std::abs(by));
    d.mean += std::abs(by);
    d.bias += by;
  }
  d.mean /= static_cast<double>(a.rgb.size());
  d.bias /= static_cast<double>(a.rgb.size());
  return d;
}

class maps_with_levels : public apps_test::maps {
 protected:
  maps_with_levels() : maps(apps_test::quick_folder()) {}
  // Of the map as it is and of its full size alone.
  struct both {
    viewer::shown quick, full;
  };
  [[nodiscard]] both show(loader& l, const map_info& map, const view& v) const {
    map_info without = map;
    without.levels = 0;
    const auto tiles = make_threaded_loader(path("map"), without);
    return {viewer(map, l).show(v), viewer(without, *tiles).show(v)};
  }
  [[nodiscard]] outcome view_whole(const std::string& out, const std::string& how = {}) const {
    return run_line("mapview view " + path("map") + " --json --out " + path(out) +
                    " --window 170x120 " + how);
  }
  [[nodiscard]] std::string tile(tile_place t) const {
    return tile_path(path("map"), read_map(path("map")), t);
  }
  void remove_level(std::uint32_t level) const {
    const map_info map = read_map(path("map"));
    const tile_grid all = grid_of(map, {0, 0, map.width, map.height}, level);
    for (std::uint32_t i = 0; i < all.size(); ++i)
      EXPECT_TRUE(fs::remove(tile_path(path("map"), map, all.at(i))));
  }
};

// Slopes, and on them a pattern that is grey from afar: who takes single pixels sees it light or
// dark.
picture slopes(std::uint32_t width, std::uint32_t height) {
  picture p(width, height);
  for (std::uint32_t y = 0; y < height; ++y) {
    for (std::uint32_t x = 0; x < width; ++x) {
      const int pattern = (x + y) % 2 == 0 ? 30 : -30;
      const int slope[3] = {static_cast<int>(120 * x / width), static_cast<int>(120 * y / height),
                            60};
      for (int c = 0; c < 3; ++c)
        p.at(x, y)[c] = static_cast<std::uint8_t>(60 + slope[c] + pattern);
    }
  }
  return p;
}

TEST_F(maps_with_levels, look_as_those_without) {
  const picture in = slopes(1003, 771);
  write_picture(path("in.png"), in);
  // Tiles of odd sizes end within the pixels of smaller levels.
  for (const std::string size : {"64x48", "61x47"}) {
    if (strata::test::sampled(false, size == "64x48")) continue;
    const outcome made = run_line("mapview make " + path("map") + " --replace --from " +
                                  path("in.png") + " --tile " + size + " --quality 100 --levels 9");
    ASSERT_EQ(made.exit_code, 0) << made.err;
    const map_info map = read_map(path("map"));
    ASSERT_EQ(map.levels, 5U);
    strata::runtime rt;
    rt.run([&] {
      for (const auto& tiles :
           {make_threaded_loader(path("map"), map), make_cluster_loader(path("map"), map)}) {
        std::set<std::uint32_t> levels;
        for (const view& v : {view{{0, 0, 1003, 771}, 501, 385}, view{{0, 0, 1003, 771}, 300, 200},
                              view{{0, 0, 1003, 771}, 125, 96}, view{{0, 0, 1003, 771}, 60, 40},
                              view{{0, 0, 1003, 771}, 31, 24}, view{{333, 222, 555, 444}, 111, 111},
                              view{{1, 1, 1001, 769}, 99, 77}, view{{512, 512, 491, 259}, 123, 65},
                              view{{900, 700, 103, 71}, 50, 30}}) {
          const both s = show(*tiles, map, v);
          levels.insert(level_for(map, v));
          EXPECT_TRUE(s.quick.missing.empty());
          EXPECT_TRUE(s.quick.replaced.empty());
          EXPECT_LT(s.quick.tiles, s.full.tiles);
          picture exact(v.width, v.height);
          draw_scaled(
              in, {1.0 * v.region.x, 1.0 * v.region.y, 1.0 * v.region.width, 1.0 * v.region.height},
              exact, 0, 0, v.width, v.height);
          // A decoder that scales an odd number of pixels takes the last ones for more than they
          // are; smaller levels are closer to what was drawn.
          const difference d = between(s.quick.window, exact);
          EXPECT_LE(d.most, 15) << v.region.x << " " << v.width;
          EXPECT_LT(d.mean, 0.9) << v.region.x << " " << v.width;
          EXPECT_NEAR(d.bias, 0, 0.5) << v.region.x << " " << v.width;
          EXPECT_LT(between(s.quick.window, s.full.window).mean, 1.5);
        }
        EXPECT_EQ(levels.size(), 5U);
        const view close{{100, 100, 200, 200}, 150, 150};
        const both s = show(*tiles, map, close);
        EXPECT_EQ(s.quick.window.rgb, s.full.window.rgb);
      }
    });
  }
}

TEST_F(maps_with_levels, need_no_large_tiles_from_afar) {
  make_small(2);
  const map_info map = read_map(path("map"));
  const outcome before = view_whole("before.png");
  ASSERT_EQ(before.exit_code, 0) << before.err;
  EXPECT_EQ(json::parse(before.last_line()).at("result").at("tiles"), map.tiles(2));
  EXPECT_EQ(json::parse(before.last_line()).at("result").at("level"), 2);
  const outcome full = view_whole("full.png", "--full-size");
  EXPECT_EQ(json::parse(full.last_line()).at("result").at("tiles"), map.tiles());
  EXPECT_EQ(json::parse(full.last_line()).at("result").at("level"), 0);
  remove_level(0);
  remove_level(1);
  for (const std::string loader : {"threads", "cluster"}) {
    const outcome o = view_whole("o.png", "--loader " + loader);
    EXPECT_EQ(o.exit_code, 0);
    EXPECT_EQ(o.err, "");
    EXPECT_EQ(read_picture(path("o.png")).rgb, read_picture(path("before.png")).rgb);
  }
  EXPECT_EQ(view_whole("o.png", "--full-size").exit_code, 1);
  EXPECT_EQ(view_whole("o.png", "--region 0,0,170,120").exit_code, 1);
}

TEST_F(maps_with_levels, are_the_larger_ones_that_get_them) {
  make_small();
  std::ifstream in(path("map") + "/map.json");
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  EXPECT_EQ(text.find("levels"), std::string::npos) << "as before there were any";
  EXPECT_EQ(read_map(path("map")).levels, 0U);
  EXPECT_EQ(fs::exists(path("map") + "/part0/level1_0_0.jpg"), false);
  const outcome small = run_line("mapview make " + path("map") +
                                 " --replace --size 700x500 --tile 64x48 --levels auto");
  EXPECT_EQ(small.exit_code, 0) << small.err;
  EXPECT_EQ(read_map(path("map")).levels, 0U);
  const outcome large =
      run_line("mapview make " + path("map") + " --replace --size 1024x272 --tile 16x16 --json");
  EXPECT_EQ(large.exit_code, 0) << large.err;
  EXPECT_EQ(read_map(path("map")).levels, 6U);
  const json result = json::parse(large.last_line()).at("result");
  EXPECT_EQ(result.at("tiles"), 64 * 17);
  EXPECT_EQ(result.at("smaller_tiles"), 32 * 9 + 16 * 5 + 8 * 3 + 4 * 2 + 2 + 1);
  const outcome top =
      run_line("mapview view " + path("map") + " --json --window 16x4 --out " + path("top.png"));
  EXPECT_EQ(top.exit_code, 0) << top.err;
  EXPECT_EQ(json::parse(top.last_line()).at("result").at("tiles"), 1);
}

TEST_F(maps_with_levels, do_not_lie_about_them) {
  make_small(4);
  json about = json::parse(std::ifstream(path("map") + "/map.json"));
  EXPECT_EQ(about.at("levels"), 4);
  EXPECT_EQ(view_whole("o.png").exit_code, 0);
  fs::remove(path("o.png"));
  for (const char* const lie : {"5", "99", "-1", "1.5", "4294967296", "18446744073709551616",
                                "null", "\"4\"", "[4]", "{}", "true"}) {
    about["levels"] = json::parse(lie);
    std::ofstream(path("map") + "/map.json") << about;
    const outcome o = view_whole("o.png");
    EXPECT_EQ(o.exit_code, 2) << lie;
    EXPECT_EQ(o.err_lines(), 1) << o.err;
    EXPECT_NE(o.err.find("'levels'"), std::string::npos) << o.err;
    EXPECT_FALSE(fs::exists(path("o.png"))) << lie;
  }
  for (const std::string bad : {"-1", "many", "1,2", "4294967296"}) {
    const outcome o = run_line("mapview make " + path("other") + " --levels " + bad);
    EXPECT_EQ(o.exit_code, 2) << bad;
    EXPECT_EQ(o.err_lines(), 1) << o.err;
    EXPECT_FALSE(fs::exists(path("other"))) << bad;
  }
}

TEST_F(maps_with_levels, are_whole_where_only_small_tiles_are_missing) {
  make_small(2);
  ASSERT_EQ(view_whole("before.png").exit_code, 0);
  const std::string gone = tile({1, 1, 2}), broken = tile({2, 0, 2});
  fs::remove(gone);
  std::ofstream(broken) << "no picture";
  const auto expect_named = [](const std::string& err, const std::string& name) {
    const std::string line = "no readable tile " + name;
    const std::size_t at = err.find(line);
    ASSERT_NE(at, std::string::npos) << err;
    EXPECT_EQ(err.find(line, at + 1), std::string::npos) << err;
  };
  for (const std::string loader : {"threads", "cluster"}) {
    const outcome o = view_whole("o.png", "--loader " + loader);
    EXPECT_EQ(o.exit_code, 3) << o.err;
    EXPECT_EQ(o.err_lines(), 3) << o.err;
    expect_named(o.err, gone);
    expect_named(o.err, broken);
    const json result = json::parse(o.last_line()).at("result");
    EXPECT_EQ(result.at("missing"), 0);
    EXPECT_EQ(result.at("replaced"), 2);
    EXPECT_EQ(result.at("tiles"), 9 + 4 + 4);
    const difference d = between(read_picture(path("o.png")), read_picture(path("before.png")));
    EXPECT_LT(d.mean, 3);
    EXPECT_GT(d.mean, 0) << "something comes from other tiles";
  }
  // The server names them once, and counts them as no holes.
  {
    running server("mapview serve " + path("map"));
    const std::string line = server.line();
    const auto port = static_cast<std::uint16_t>(std::stoi(line.substr(line.rfind(':') + 1)));
    EXPECT_EQ(json::parse(get(port, "/map.json").body).at("levels"), 2);
    ASSERT_EQ(run_line("mapview view " + path("map") + " --window 170x120 --out " + path("o.jpg"))
                  .exit_code,
              3);
    std::ifstream in(path("o.jpg"), std::ios::binary);
    const std::string viewed{std::istreambuf_iterator<char>(in), {}};
    for (int i = 0; i < 2; ++i) {
      const reply r = get(port, "/view?x=0&y=0&width=700&height=500&to_width=170&to_height=120");
      EXPECT_EQ(r.status, 200);
      EXPECT_EQ(r.header("X-Missing-Tiles"), "0");
      EXPECT_TRUE(r.body == viewed);
    }
    server.signal(SIGINT);
    const outcome o = server.end();
    EXPECT_EQ(o.exit_code, 3);
    EXPECT_EQ(o.err_lines(), 3) << o.err;
    expect_named(o.err, gone);
  }
  // Below one of them a hole at every level.
  fs::remove(tile({2, 2, 1}));
  fs::remove(tile({4, 5, 0}));
  const outcome o = view_whole("o.png");
  EXPECT_EQ(o.exit_code, 1);
  const json result = json::parse(o.last_line()).at("result");
  EXPECT_EQ(result.at("missing"), 1);
  EXPECT_EQ(result.at("replaced"), 3);
  expect_named(o.err, tile({4, 5, 0}));
}

TEST_F(maps_with_levels, are_whole_without_any_small_tile) {
  make_small(2);
  ASSERT_EQ(view_whole("full.png", "--full-size").exit_code, 0);
  remove_level(1);
  remove_level(2);
  for (const std::string job : {"", "strata run -n 2 --workers 1 " APPS_BIN_DIR "/"}) {
    const outcome o =
        run_line(job + "mapview view " + path("map") + " --window 170x120 --out " + path("o.png"));
    EXPECT_EQ(o.exit_code, 3) << o.err;
    EXPECT_EQ(read_picture(path("o.png")).rgb, read_picture(path("full.png")).rgb);
    fs::remove(path("o.png"));
  }
}

TEST_F(maps_with_levels, come_from_two_nodes_that_see_no_folders_but_their_own) {
  make_small(2);
  // For what is missing there the tiles below it are asked for, of which each node has some.
  fs::remove(tile({1, 1, 2}));
  ASSERT_EQ(view_whole("one.png").exit_code, 3);
  for (const std::string disk : {"even", "odd"}) {
    fs::create_directories(path(disk) + "/map");
    fs::copy(path("map") + "/map.json", path(disk) + "/map");
  }
  for (const auto& [part, disk] : {std::pair{"part0", "even"}, {"part1", "odd"}, {"part2", "even"}})
    fs::rename(path("map") + "/" + part, path(disk) + "/map/" + part);
  std::ofstream(path("node.sh")) << "if [ $STRATA_NODE = 0 ]; then cd $1; else cd $2; fi\n"
                                    "exec " APPS_BIN_DIR
                                    "/mapview view map --window 170x120 --out $3\n";
  for (const auto& [first, second] : {std::pair{"even", "odd"}, {"odd", "even"}}) {
    const outcome two = run_line("strata run -n 2 --workers 1 sh " + path("node.sh") + " " +
                                 path(first) + " " + path(second) + " " + path("two.png"));
    ASSERT_EQ(two.exit_code, 3) << two.err;
    EXPECT_EQ(two.err_lines(), 2) << two.err;
    EXPECT_EQ(read_picture(path("two.png")).rgb, read_picture(path("one.png")).rgb) << first;
    fs::remove(path("two.png"));
  }
}

TEST_F(maps_with_levels, are_none_before_all_is_written) {
  const std::string command = "mapview make " + path("map") +
                              " --replace --size 600x450 --tile 150x114 --quality 100 --levels 2";
  ASSERT_EQ(run_line(command).exit_code, 0);
  ASSERT_TRUE(fs::exists(path("map") + "/map.json"));
  const std::string pipe = tile({0, 0, 1});
  fs::remove(pipe);
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(reader, 0);
  ASSERT_GE(::fcntl(reader, F_SETPIPE_SZ, 4096), 4096);  // less than the tile
  {
    running made(command);
    pollfd something{reader, POLLIN, 0};
    while (::poll(&something, 1, -1) != 1 || (something.revents & POLLIN) == 0) {
    }
    made.signal(SIGKILL);
    EXPECT_EQ(made.end().exit_code, 128 + SIGKILL);
  }
  ::close(reader);
  const outcome o = run_line("mapview view " + path("map") + " --out " + path("o.png"));
  EXPECT_EQ(o.exit_code, 2);
  EXPECT_EQ(o.err_lines(), 1) << o.err;
  EXPECT_NE(o.err.find("no map at"), std::string::npos) << o.err;
  fs::remove(pipe);
  // Where a small tile cannot be written there is no map either.
  fs::create_directory(pipe);
  const outcome refused = run_line(command);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_EQ(refused.err_lines(), 1) << refused.err;
  EXPECT_FALSE(fs::exists(path("map") + "/map.json"));
  fs::remove(pipe);
  ASSERT_EQ(run_line(command).exit_code, 0);
  remove_level(0);
  EXPECT_EQ(view_whole("o.png").exit_code, 0);
}

}  // namespace
