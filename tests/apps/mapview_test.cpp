// SPDX-License-Identifier: Apache-2.0
// mapview from outside and its parts from inside.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <random>
#include <strata/error.hpp>
#include <strata/runtime.hpp>
#include <string>
#include <utility>
#include <vector>

#include "apps/mapview/scaling.hpp"
#include "apps/mapview/terrain.hpp"
#include "apps/mapview/viewer.hpp"
#include "mapview_fixture.hpp"
#include "mapview_views.hpp"
#include "picture_files.hpp"
#include "tests/common/sampled.hpp"

namespace {

using namespace mapview;
using apps_test::maps;
using apps_test::outcome;
using apps_test::read_picture;
using apps_test::run_line;
using apps_test::write_picture;
using nlohmann::json;
namespace fs = std::filesystem;

// Peak signal-to-noise ratio in dB.
double likeness(const picture& a, const picture& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.rgb.size(); ++i) {
    const double d = double{1} * a.rgb[i] - b.rgb[i];
    sum += d * d;
  }
  return 10 * std::log10(255.0 * 255.0 * static_cast<double>(a.rgb.size()) / std::max(sum, 1e-9));
}

// As each of several that mpirun has started.
TEST_F(maps, a_process_that_joins_no_job_has_its_picture) {
  make_small();
  const apps_test::variable job("PMIX_NAMESPACE", "job");
  const apps_test::variable rank("PMIX_RANK", "1");
  const outcome o =
      run_line("mapview view " + path("map") + " --out " + path("a.png") + " --strata-launch none");
  EXPECT_EQ(o.exit_code, 0) << o.err;
  EXPECT_EQ(read_picture(path("a.png")).width, 600U);
}

TEST(map_geometry, of_the_papers_regions) {
  // Derived from the paper's map: 9600 x 9600 pixels, tiles of 640 x 480.
  const map_info map;
  EXPECT_EQ(map.columns(), 15U);
  EXPECT_EQ(map.rows(), 20U);
  const std::pair<std::uint32_t, std::size_t> known[] = {
      {600, 2}, {1200, 6}, {2400, 20}, {3000, 35}, {4800, 80}, {6000, 130}, {9600, 300}};
  for (const auto& [side, tiles] : known)
    EXPECT_EQ(tiles_of(map, {0, 0, side, side}).size(), tiles) << side;
}

TEST(map_geometry, fragments_cover_the_window_once) {
  std::mt19937 random(7);
  for (int i = 0; i < 300; ++i) {
    map_info map;
    map.width = 1 + random() % 2000;
    map.height = 1 + random() % 2000;
    map.tile_width = 16 + random() % 300;
    map.tile_height = 16 + random() % 300;
    const view v = apps_test::any_view(random, map);
    std::vector<int> covered(std::size_t{v.width} * v.height);
    for (const tile_place t : tiles_of(map, v.region)) {
      const rectangle p = pixels_of(map, v, t);
      ASSERT_LE(p.x + p.width, v.width);
      ASSERT_LE(p.y + p.height, v.height);
      for (std::uint32_t y = p.y; y < p.y + p.height; ++y) {
        for (std::uint32_t x = p.x; x < p.x + p.width; ++x) ++covered[std::size_t{y} * v.width + x];
      }
    }
    for (const int c : covered) ASSERT_EQ(c, 1);
  }
}

TEST(map_pictures, scale_to_means) {
  picture from(8, 6);
  for (std::uint32_t y = 0; y < 6; ++y) {
    for (std::uint32_t x = 0; x < 8; ++x) {
      from.at(x, y)[0] = static_cast<std::uint8_t>(x * 10);
      from.at(x, y)[1] = static_cast<std::uint8_t>(y * 10);
      from.at(x, y)[2] = 200;
    }
  }
  picture to(4, 3);
  draw_scaled(from, {0, 0, 8, 6}, to, 0, 0, 4, 3);
  for (std::uint32_t y = 0; y < 3; ++y) {
    for (std::uint32_t x = 0; x < 4; ++x) {
      EXPECT_EQ(to.at(x, y)[0], x * 20 + 5);
      EXPECT_EQ(to.at(x, y)[1], y * 20 + 5);
      EXPECT_EQ(to.at(x, y)[2], 200);
    }
  }
}

// How much of source pixel s the target pixel from `begin` on covers.
double overlap(double begin, double length, std::uint32_t s) {
  return std::max(0.0, std::min(begin + length, s + 1.0) - std::max(begin, double{1} * s));
}

TEST(map_pictures, scale_any_part_by_the_definition) {
  std::mt19937 random(7);
  const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
  for (int round = 0; round < strata::test::sampled(200, 60); ++round) {
    picture from(1 + below(40), 1 + below(30));
    for (std::uint8_t& b : from.rgb) b = static_cast<std::uint8_t>(random());
    const bool whole_pixels = round % 2 == 0;
    part of;
    of.x = below(from.width);
    of.y = below(from.height);
    of.width = 1 + below(from.width - static_cast<std::uint32_t>(of.x));
    of.height = 1 + below(from.height - static_cast<std::uint32_t>(of.y));
    const bool is_copied = round % 4 == 0;
    const bool is_halved = round % 4 == 2 && of.width >= 2 && of.height >= 2;
    const unsigned by = is_halved ? 2 : 1;
    const bool by_itself = is_copied || is_halved;
    const auto width = by_itself ? static_cast<std::uint32_t>(of.width) / by : 1 + below(50);
    const auto height = by_itself ? static_cast<std::uint32_t>(of.height) / by : 1 + below(50);
    if (is_halved) {
      of.width = 2 * width;
      of.height = 2 * height;
    }
    if (!whole_pixels) {
      of.x += 0.25;
      of.width -= 0.5;
      of.y += 0.125;
      of.height -= 0.375;
    }
    picture to(width + 5, height + 3);
    draw_scaled(from, of, to, 4, 2, width, height);
    const double across = of.width / width, down = of.height / height;
    for (std::uint32_t y = 0; y < height; ++y) {
      for (std::uint32_t x = 0; x < width; ++x) {
        double sum[3] = {0, 0, 0};
        for (std::uint32_t v = 0; v < from.height; ++v) {
          for (std::uint32_t u = 0; u < from.width; ++u) {
            const double w = overlap(of.x + x * across, across, u) / across *
                             overlap(of.y + y * down, down, v) / down;
            for (int c = 0; c < 3; ++c) sum[c] += w * from.at(u, v)[c];
          }
        }
        for (int c = 0; c < 3; ++c)
          ASSERT_NEAR(to.at(x + 4, y + 2)[c], sum[c], is_copied ? 0.0 : 0.51) << round;
      }
    }
    for (std::uint32_t y = 0; y < to.height; ++y) EXPECT_EQ(to.at(3, y)[1], 0) << "outside";
  }
}

TEST_F(maps, survive_png_and_roughly_jpeg) {
  const picture p = draw_terrain(900, 700, {200, 100, 321, 123});
  write_picture(path("p.png"), p);
  EXPECT_EQ(read_picture(path("p.png")).rgb, p.rgb);
  const picture q = decode_jpeg(encode_jpeg(p, 95));
  ASSERT_EQ(q.width, p.width);
  EXPECT_GT(likeness(p, q), 28);
  std::vector<unsigned char> bytes = encode_jpeg(p, 90);
  bytes.resize(bytes.size() / 3);
  EXPECT_THROW((void)decode_jpeg(bytes), picture_error);
  EXPECT_THROW((void)decode_jpeg({}), picture_error);
}

TEST_F(maps, are_shown_as_they_were_drawn) {
  make_small();
  const map_info map = read_map(path("map"));
  strata::runtime rt;
  rt.run([&] {
    const auto by_threads = make_threaded_loader(path("map"), map);
    const auto by_cluster = make_cluster_loader(path("map"), map);
    const picture whole = draw_terrain(700, 500, {0, 0, 700, 500});
    for (const view& v : {view{{0, 0, 700, 500}, 700, 500}, view{{0, 0, 700, 500}, 100, 80},
                          view{{130, 77, 333, 222}, 150, 90}, view{{64, 48, 64, 48}, 64, 48},
                          view{{300, 200, 20, 20}, 200, 200}}) {
      const viewer::shown s = viewer(map, *by_threads).show(v);
      EXPECT_TRUE(s.missing.empty());
      EXPECT_EQ(s.tiles, tiles_of(map, v.region).size());
      EXPECT_EQ(viewer(map, *by_cluster).show(v).window.rgb, s.window.rgb);
      picture expected(v.width, v.height);
      draw_scaled(whole,
                  {double{1} * v.region.x, double{1} * v.region.y, double{1} * v.region.width,
                   double{1} * v.region.height},
                  expected, 0, 0, v.width, v.height);
      EXPECT_GT(likeness(expected, s.window), 24) << v.region.x << " " << v.width;
    }
  });
}

TEST_F(maps, look_the_same_from_one_node_and_from_three) {
  make_small();
  const outcome one = run_line("mapview view " + path("map") + " --out " + path("one.png") +
                               " --window 300x200 --region 50,60,500,400 --json");
  ASSERT_EQ(one.exit_code, 0) << one.err;
  EXPECT_EQ(json::parse(one.last_line()).at("result").at("tiles"), 81);
  const outcome three =
      run_line("strata run -n 3 --workers 1 " APPS_BIN_DIR "/mapview view " + path("map") +
               " --out " + path("three.png") + " --window 300x200 --region 50,60,500,400");
  ASSERT_EQ(three.exit_code, 0) << three.err;
  EXPECT_EQ(read_picture(path("one.png")).rgb, read_picture(path("three.png")).rgb);
}

// Each node's tiles are where the other one does not find them: whatever one takes over, it has to
// leave to the other, and that may be more than there is room for in messages. And whichever node
// answers for a folder that lies with the other.
TEST_F(maps, are_whole_where_nodes_see_no_folders_but_their_own) {
  const outcome made = run_line("mapview make " + path("map") + " --size " +
                                strata::test::sampled("1200x900", "480x360") +
                                " --tile 16x16 --folders 3 --levels 0");
  ASSERT_EQ(made.exit_code, 0) << made.err;
  const outcome one = run_line("mapview view " + path("map") + " --out " + path("one.png"));
  ASSERT_EQ(one.exit_code, 0) << one.err;
  for (const std::string disk : {"even", "odd"}) {
    fs::create_directories(path(disk) + "/map");
    fs::copy(path("map") + "/map.json", path(disk) + "/map");
  }
  fs::rename(path("map") + "/part0", path("even") + "/map/part0");
  fs::rename(path("map") + "/part1", path("odd") + "/map/part1");
  fs::rename(path("map") + "/part2", path("even") + "/map/part2");
  std::ofstream(path("node.sh")) << "if [ $STRATA_NODE = 0 ]; then cd $1; else cd $2; fi\n"
                                    "exec " APPS_BIN_DIR "/mapview view map --out $3\n";
  for (const auto& [first, second] : {std::pair{"even", "odd"}, {"odd", "even"}}) {
    const outcome two = run_line("strata run -n 2 --workers 1 sh " + path("node.sh") + " " +
                                 path(first) + " " + path(second) + " " + path("two.png"));
    ASSERT_EQ(two.exit_code, 0) << two.err;
    EXPECT_EQ(two.err, "");
    EXPECT_EQ(read_picture(path("two.png")).rgb, read_picture(path("one.png")).rgb) << first;
    fs::remove(path("two.png"));
  }
}

TEST_F(maps, are_cut_from_pictures) {
  const picture p = draw_terrain(300, 200, {0, 0, 300, 200});
  write_picture(path("in.png"), p);
  const outcome made = run_line("mapview make " + path("map") + " --from " + path("in.png") +
                                " --tile 128x96 --quality 97");
  ASSERT_EQ(made.exit_code, 0) << made.err;
  const outcome shown =
      run_line("mapview view " + path("map") + " --out " + path("out.png") + " --window 300x200");
  ASSERT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_GT(likeness(read_picture(path("out.png")), p), 30);
}

TEST_F(maps, with_holes_say_so) {
  make_small();
  const map_info map = read_map(path("map"));
  fs::remove(tile_path(path("map"), map, {2, 1}));
  std::ofstream(tile_path(path("map"), map, {3, 1})) << "no picture";
  write_picture(tile_path(path("map"), map, {4, 1}), picture(10, 10));
  const outcome o = run_line("mapview view " + path("map") + " --out " + path("o.jpg"));
  EXPECT_EQ(o.exit_code, 1);
  EXPECT_EQ(o.err_lines(), 4) << o.err;
  EXPECT_NE(o.err.find(tile_path(path("map"), map, {2, 1})), std::string::npos) << o.err;
  EXPECT_TRUE(fs::exists(path("o.jpg")));
}

// Nobody waits for who writes to a pipe, nor reads what has no end.
TEST_F(maps, take_what_is_no_plain_file_for_a_hole) {
  make_small();
  const map_info map = read_map(path("map"));
  const auto tile = [&](std::uint32_t column) { return tile_path(path("map"), map, {column, 1}); };
  for (std::uint32_t column = 2; column <= 5; ++column) fs::remove(tile(column));
  ASSERT_EQ(::mkfifo(tile(2).c_str(), 0600), 0);
  fs::create_symlink("/dev/zero", tile(3));
  fs::create_directory(tile(4));
  std::ofstream(tile(5)).close();
  fs::resize_file(tile(5), std::uintmax_t{16} << 30);
  for (const std::string job : {"", "strata run -n 2 --workers 1 " APPS_BIN_DIR "/"}) {
    const outcome o = run_line(job + "mapview view " + path("map") + " --out " + path("o.jpg"));
    EXPECT_EQ(o.exit_code, 1) << job << o.err;
    EXPECT_EQ(o.err_lines(), 5) << o.err;
    for (std::uint32_t column = 2; column <= 5; ++column)
      EXPECT_NE(o.err.find(tile(column)), std::string::npos) << o.err;
  }
  const std::string about = path("map/map.json");
  const auto expect_no_map = [&] {
    for (const std::string& line : {"mapview view " + path("map") + " --out " + path("p.jpg"),
                                    "mapview make " + path("map")}) {
      const outcome o = run_line(line);
      EXPECT_EQ(o.exit_code, 2) << line;
      EXPECT_EQ(o.err_lines(), 1) << o.err;
    }
    fs::remove(about);
  };
  fs::remove(about);
  ASSERT_EQ(::mkfifo(about.c_str(), 0600), 0);
  expect_no_map();
  fs::create_symlink("/dev/zero", about);
  expect_no_map();
}

TEST_F(maps, refuse_bad_input_with_one_line) {
  make_small();
  const std::string map = path("map");
  std::ofstream(path("bad.png")) << "no picture";
  fs::create_directory(path("half"));
  std::ofstream(path("half/map.json")) << "{\"width\": 10, \"height\": -3}";
  for (const std::string& line : std::vector<std::string>{
           "mapview view " + path("none") + " --out " + path("o.png"),
           "mapview view " + path("half") + " --out " + path("o.png"),
           "mapview view " + map + " --out " + path("o.bmp"),
           "mapview view " + map + " --out " + path("no/such/o.png"),
           "mapview view " + map + " --out " + path("o.png") + " --region 1,2,3",
           "mapview view " + map + " --out " + path("o.png") + " --region 0,0,701,500",
           "mapview view " + map + " --out " + path("o.png") + " --region 0,0,0,5",
           "mapview view " + map + " --out " + path("o.png") + " --window 0x5",
           "mapview view " + map + " --out " + path("o.png") + " --loader magic",
           "mapview regions " + map,
           "mapview make " + path("m") + " --size 10",
           "mapview make " + path("m") + " --tile 1x1",
           "mapview make " + path("m") + " --from " + path("bad.png"),
           "mapview make " + path("m") + " --from " + path("none.jpg"),
           "mapview make /proc/no/map --size 64x48",
           "mapview show " + map,
           "mapview",
       }) {
    const outcome o = run_line(line);
    EXPECT_EQ(o.exit_code, 2) << line;
    EXPECT_EQ(o.err_lines(), 1) << line << "\n" << o.err;
    EXPECT_FALSE(fs::exists(path("o.png"))) << line;
  }
  EXPECT_EQ(apps_test::run({"mapview", "make", "", "--size", "64x48"}).err,
            "mapview: a map without a name: choose a folder\n");
}

// There is no map, but that would be found out later.
TEST_F(maps, are_not_shown_before_it_is_known_that_what_is_seen_can_be_written) {
  const std::string none = path("none"), no_folder = path("no/such/");
  for (const auto& [line, output] : std::vector<std::pair<std::string, std::string>>{
           {"view " + none + " --out " + path("o.bmp"), path("o.bmp")},
           {"view " + none + " --out " + no_folder + "o.png", no_folder + "o.png"},
           {"regions " + none + " --csv " + no_folder + "t.csv", no_folder + "t.csv"},
           {"regions " + none + " --svg " + no_folder + "t.svg", no_folder + "t.svg"}}) {
    const outcome o = run_line("mapview " + line);
    EXPECT_EQ(o.exit_code, 2) << line;
    EXPECT_EQ(o.err_lines(), 1) << o.err;
    EXPECT_NE(o.err.find(output), std::string::npos) << o.err;
  }
}

TEST_F(maps, have_so_many_tiles_and_no_more) {
  const outcome o =
      run_line("mapview make " + path("map") + " --size 1048576x1048576 --tile 16x16");
  EXPECT_EQ(o.exit_code, 2);
  EXPECT_EQ(o.err_lines(), 1) << o.err;
  EXPECT_FALSE(fs::exists(path("map")));
  fs::create_directory(path("map"));
  std::ofstream(path("map") + "/map.json") << R"({"width": 1048576, "height": 1048576,
      "tile_width": 16, "tile_height": 16, "folders": 1})";
  EXPECT_THROW((void)read_map(path("map")), strata::user_error);
}

// Every tag ends, within what it began in, and what has to be quoted is.
bool is_well_formed(const std::string& xml) {
  std::vector<std::string> open;
  for (std::size_t at = 0; at < xml.size();) {
    if (xml[at] == '&') return false;  // none is needed
    if (xml[at++] != '<') continue;
    const std::size_t end = xml.find('>', at);
    if (end == std::string::npos) return false;
    const std::string tag = xml.substr(at, end - at);
    if (std::count(tag.begin(), tag.end(), '"') % 2 != 0) return false;
    if (tag.empty()) return false;
    if (tag.front() == '/') {
      if (open.empty() || tag != "/" + open.back()) return false;
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(tag.substr(0, tag.find(' ')));
    }
    at = end + 1;
  }
  return open.empty();
}

TEST_F(maps, of_9600_pixels_have_the_papers_regions) {
  // All tiles are the same one, which is decoded as any other.
  ASSERT_EQ(run_line("mapview make " + path("map") + " --size 640x480 --folders 1").exit_code, 0);
  map_info map = read_map(path("map"));
  const std::string first = tile_path(path("map"), map, {0, 0});
  map.width = map.height = 9600;
  for (std::uint32_t row = 0; row < 20; ++row) {
    for (std::uint32_t column = 0; column < 15; ++column) {
      if (row + column != 0)
        fs::create_hard_link(first, tile_path(path("map"), map, {column, row}));
    }
  }
  write_map(path("map"), map);
  const outcome o = run_line("mapview regions " + path("map") + " --repeat 1 --json --csv " +
                             path("t.csv") + " --svg " + path("t.svg"));
  ASSERT_EQ(o.exit_code, 0) << o.err;
  const json regions = json::parse(o.last_line()).at("result").at("regions");
  ASSERT_EQ(regions.size(), 7U);
  std::ifstream csv(path("t.csv"));
  std::string line;
  ASSERT_TRUE(std::getline(csv, line));
  EXPECT_EQ(line, "region,side_px,tiles,seconds");
  constexpr std::array<std::pair<int, int>, 7> sides_and_tiles{
      {{600, 2}, {1200, 6}, {2400, 20}, {3000, 35}, {4800, 80}, {6000, 130}, {9600, 300}}};
  for (std::size_t i = 0; i < regions.size(); ++i) {
    const auto& [side, tiles] = sides_and_tiles[i];
    ASSERT_TRUE(std::getline(csv, line));
    const std::string begin =
        std::to_string(i + 1) + "," + std::to_string(side) + "," + std::to_string(tiles) + ",";
    EXPECT_EQ(line.substr(0, begin.size()), begin);
    EXPECT_GT(std::stod(line.substr(begin.size())), 0);
    EXPECT_EQ(regions[i].at("side"), side);
    EXPECT_EQ(regions[i].at("tiles"), tiles);
  }
  EXPECT_FALSE(std::getline(csv, line));
  std::ifstream in(path("t.svg"));
  const std::string svg{std::istreambuf_iterator<char>(in), {}};
  EXPECT_TRUE(is_well_formed(svg)) << svg;
  EXPECT_EQ(svg.find("<svg xmlns=\"http://www.w3.org/2000/svg\""), 0U);
  std::size_t bars = 0;
  for (std::size_t at = svg.find("<rect "); at != std::string::npos;
       at = svg.find("<rect ", at + 1))
    ++bars;
  EXPECT_EQ(bars, 7U);
  EXPECT_NE(svg.find(">300 tiles</text>"), std::string::npos);
  // A map that is too small for them.
  ASSERT_EQ(run_line("mapview make " + path("small") + " --size 640x480").exit_code, 0);
  const outcome small = run_line("mapview regions " + path("small") + " --csv " + path("no.csv"));
  EXPECT_EQ(small.exit_code, 2);
  EXPECT_EQ(small.err_lines(), 1) << small.err;
  EXPECT_FALSE(fs::exists(path("no.csv")));
}

TEST_F(maps, may_have_names_that_are_not_utf_8) {
  const outcome o = apps_test::run(
      {"mapview", "make", path("\xff"), "--size", "64x64", "--tile", "64x64", "--json"});
  EXPECT_EQ(o.exit_code, 0) << o.err;
  EXPECT_EQ(json::parse(o.last_line()).at("parameters").at("map"), path("\xEF\xBF\xBD"));
}

}  // namespace
