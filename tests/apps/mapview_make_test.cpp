// SPDX-License-Identifier: Apache-2.0
// Maps that are cut from pictures, and what is in the way of one.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "../common/slow_builds.hpp"
#include "apps/mapview/file.hpp"
#include "apps/mapview/fragment.hpp"
#include "apps/mapview/terrain.hpp"
#include "apps/mapview/tiling.hpp"
#include "mapview_fixture.hpp"
#include "picture_files.hpp"
#include "running_program.hpp"

namespace {

using namespace mapview;
using apps_test::outcome;
using apps_test::run_line;
using apps_test::write_picture;
namespace fs = std::filesystem;

class made_maps : public apps_test::maps {
 protected:
  made_maps() : maps(apps_test::quick_folder()) {}
  // What the files in a folder hold, by their names.
  [[nodiscard]] std::map<std::string, std::string> files(const std::string& name) const {
    std::map<std::string, std::string> all;
    if (!fs::exists(path(name))) return all;
    for (const fs::directory_entry& e : fs::recursive_directory_iterator(path(name))) {
      if (!e.is_regular_file()) continue;
      std::ifstream in(e.path(), std::ios::binary);
      all[fs::relative(e.path(), path(name)).string()] = {std::istreambuf_iterator<char>(in), {}};
    }
    return all;
  }
  void make(const std::string& name, const std::string& flags) const {
    const outcome o = run_line("mapview make " + path(name) + " " + flags);
    ASSERT_EQ(o.exit_code, 0) << flags << "\n" << o.err;
  }
  void expect_refused(const std::string& flags, const std::string& words,
                      const std::string& name = "map") const {
    const outcome o = run_line("mapview make " + path(name) + " " + flags);
    EXPECT_EQ(o.exit_code, 2) << flags;
    EXPECT_EQ(o.err_lines(), 1) << o.err;
    EXPECT_NE(o.err.find(words), std::string::npos) << o.err;
  }
  void cut_short(const std::string& name) const {
    fs::resize_file(path(name), fs::file_size(path(name)) * 3 / 5);
  }
};

// A terrain goes tile by tile from the smallest level down, a picture row by row from the full size
// up.
TEST_F(made_maps, are_the_same_from_rows_as_from_tiles) {
  struct shape {
    std::string size, tile, levels;
  };
  for (const shape& s : {shape{"700x500", "64x48", "4"},
                         {"701x499", "64x48", "3"},
                         {"513x700", "65x48", "9"},
                         {"500x513", "64x47", "9"},
                         {"333x301", "37x41", "2"},
                         {"1x300", "16x16", "9"},
                         {"300x1", "17x16", "9"},
                         {"48x96", "64x48", "0"},
                         {"97x95", "33x31", "0"}}) {
    SCOPED_TRACE(s.size + " in tiles of " + s.tile);
    // Threads do the same with each.
    if (strata::test::thread_sanitizer && s.size != "700x500") continue;
    const std::string flags = " --folders 3 --tile " + s.tile + " --levels " + s.levels;
    make("terrain", "--replace --size " + s.size + flags);
    const map_info map = read_map(path("terrain"));
    picture whole(map.width, map.height);
    for (const tile_place t : tiles_of(map, {0, 0, map.width, map.height})) {
      const rectangle area = map.area_of(t);
      paste(draw_terrain(map.width, map.height, area), whole, area.x, area.y);
    }
    write_picture(path("whole.png"), whole);
    make("cut", "--replace --from " + path("whole.png") + flags);
    EXPECT_TRUE(files("cut") == files("terrain"));
    apps_test::write_interlaced(path("interlaced.png"), whole);
    make("held", "--replace --from " + path("interlaced.png") + flags);
    EXPECT_TRUE(files("held") == files("terrain"));
  }
}

TEST_F(made_maps, are_the_same_from_jpeg_as_from_its_pixels) {
  const picture p = draw_terrain(400, 300, {0, 0, 400, 300});
  write_picture(path("plain.jpg"), p);
  apps_test::write_progressive(path("progressive.jpg"), p);
  for (const std::string name : {"plain.jpg", "progressive.jpg"}) {
    write_picture(path("pixels.png"), decode_jpeg(read_file(path(name))));
    make("pixels", "--replace --tile 64x48 --levels 3 --from " + path("pixels.png"));
    make("jpeg", "--replace --tile 64x48 --levels 3 --from " + path(name));
    EXPECT_TRUE(files("jpeg") == files("pixels")) << name;
  }
}

TEST_F(made_maps, leave_nothing_of_a_picture_that_ends_too_early) {
  const picture p = draw_terrain(700, 500, {0, 0, 700, 500});
  write_picture(path("plain.png"), p);
  apps_test::write_interlaced(path("interlaced.png"), p);
  write_picture(path("plain.jpg"), p);
  apps_test::write_progressive(path("progressive.jpg"), p);
  fs::create_directories(path("prepared/part1"));
  for (const std::string name : {"plain.png", "interlaced.png", "plain.jpg", "progressive.jpg"}) {
    cut_short(name);
    const std::string flags = "--tile 64x48 --levels 2 --from " + path(name);
    expect_refused(flags, path(name), "new/map");
    EXPECT_FALSE(fs::exists(path("new"))) << name;
    expect_refused(flags, path(name), "prepared");
    EXPECT_TRUE(files("prepared").empty()) << name;
    EXPECT_TRUE(fs::exists(path("prepared/part1"))) << name;
    EXPECT_FALSE(fs::exists(path("prepared/part0"))) << name;
  }
}

// The program reads the first part of a picture from a pipe and waits for the rest.
class maps_from_pipes : public made_maps {
 protected:
  maps_from_pipes() {
    write_picture(path("in.png"), draw_terrain(700, 500, {0, 0, 700, 500}));
    picture_ = files("").at("in.png");
  }
  ~maps_from_pipes() override {
    if (pipe_ >= 0) close(pipe_);
  }
  // Returns when the first tile is there.
  void begin() {
    ASSERT_EQ(mkfifo(path("pipe.png").c_str(), 0600), 0);
    maker_.emplace("mapview make " + path("map") + " --tile 64x48 --from " + path("pipe.png"));
    pipe_ = open(path("pipe.png").c_str(), O_WRONLY | O_CLOEXEC);
    feed(0, picture_.size() / 2);
    while (files("map").empty()) std::this_thread::yield();
  }
  void feed_the_rest() {
    feed(picture_.size() / 2, picture_.size());
    close(std::exchange(pipe_, -1));
  }
  apps_test::running& maker() { return *maker_; }

 private:
  void feed(std::size_t begin, std::size_t end) const {
    while (begin < end) {
      const ssize_t n = ::write(pipe_, picture_.data() + begin, end - begin);
      ASSERT_GT(n, 0);
      begin += static_cast<std::size_t>(n);
    }
  }

  std::string picture_;
  std::optional<apps_test::running> maker_;
  int pipe_ = -1;
};

TEST_F(maps_from_pipes, leave_nothing_when_a_signal_ends_them) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    begin();
    maker().signal(number);
    EXPECT_EQ(maker().end().exit_code, 128 + number);
    EXPECT_FALSE(fs::exists(path("map")));
    fs::remove(path("pipe.png"));
  }
}

TEST_F(maps_from_pipes, are_finished_where_the_signal_is_ignored) {
  ::signal(SIGHUP, SIG_IGN);  // as under nohup
  begin();
  ::signal(SIGHUP, SIG_DFL);
  maker().signal(SIGHUP);
  feed_the_rest();
  EXPECT_EQ(maker().end().exit_code, 0);
  EXPECT_TRUE(fs::exists(path("map/map.json")));
}

TEST(mapview_commands, are_named_by_what_helps_with_them) {
  const outcome o = run_line("mapview view nowhere");
  EXPECT_EQ(o.exit_code, 2);
  EXPECT_NE(o.err.find("'mapview view --help' lists"), std::string::npos) << o.err;
}

TEST(mapview_commands, are_listed_where_there_is_no_such) {
  const outcome o = run_line("mapview frob");
  EXPECT_EQ(o.exit_code, 2);
  EXPECT_NE(o.err.find("'frob' is none of: make, view, serve, regions"), std::string::npos)
      << o.err;
}

TEST_F(made_maps, have_one_size) {
  write_picture(path("in.png"), picture(30, 20));
  expect_refused("--from " + path("in.png") + " --size 10x10", "--size");
  expect_refused("--from " + path("in.png") + " --size 30x20", "--size");
  EXPECT_FALSE(fs::exists(path("map")));
}

TEST_F(made_maps, replace_others_only_where_they_are_asked_to) {
  make_small(2);
  const auto before = files("map");
  expect_refused("--size 64x48", "--replace");
  EXPECT_TRUE(files("map") == before);
  make("map", "--replace --size 64x48 --folders 2");
  EXPECT_EQ(files("map").size(), 2U);
  EXPECT_TRUE(fs::exists(path("map/part0/0_0.jpg")));
  EXPECT_FALSE(fs::exists(path("map/part2"))) << "of a folder that there is no longer";
  make("fresh", "--size 64x48 --folders 2");
  EXPECT_TRUE(files("map") == files("fresh"));
}

TEST_F(made_maps, say_that_another_one_was_not_finished) {
  make_small();
  fs::remove(path("map/map.json"));
  const auto before = files("map");
  expect_refused("--size 64x48", "not finished");
  EXPECT_TRUE(files("map") == before);
  make("map", "--replace --size 64x48 --folders 3");
  EXPECT_EQ(files("map").size(), 2U);
}

// A make that is killed may leave files under the names that they had for the time before.
TEST_F(made_maps, are_not_mixed_with_one_that_is_being_made) {
  fs::create_directory(path("map"));
  // As another make has it.
  const int held = open(path("map").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  ASSERT_EQ(flock(held, LOCK_EX | LOCK_NB), 0);
  for (const char* const flags : {"--size 100x100", "--size 100x100 --replace"})
    expect_refused(flags, "another mapview make is at work there");
  EXPECT_TRUE(fs::is_empty(path("map")));
  close(held);
  make("map", "--size 100x100");
}

TEST_F(made_maps, replace_what_was_half_written) {
  fs::create_directories(path("map/part0"));
  for (const std::string name :
       {"part0/3_4.jpg.77-0", "part0/level1_0_0.jpg.78-12", "map.json.77-0"}) {
    std::ofstream(path("map/" + name)) << "half";
    expect_refused("--size 64x48", "not finished");
    EXPECT_EQ(files("map").size(), 1U);
    make("map", "--replace --size 64x48");
    EXPECT_EQ(files("map").size(), 2U) << name;
    fs::remove(path("map/map.json"));
    fs::remove(path("map/part0/0_0.jpg"));
  }
}

// What the errors of other commands say is to be done about a map can be done.
TEST_F(made_maps, are_mended_as_is_advised) {
  const auto view = [&] {
    return run_line("mapview view " + path("map") + " --out " + path("o.png"));
  };
  make("map", "--size 64x48");
  fs::remove(path("map/part0/0_0.jpg"));
  outcome o = view();
  EXPECT_EQ(o.exit_code, 1);
  EXPECT_NE(o.err.find("mapview make --replace"), std::string::npos) << o.err;
  make("map", "--replace --size 64x48");
  for (const bool of_a_map : {true, false}) {
    std::ofstream(path("map/map.json"))
        << (of_a_map ? R"({"width": 0, "tile_width": 64, "folders": 1})" : R"({"width": 64, "he)");
    o = view();
    EXPECT_EQ(o.exit_code, 2);
    EXPECT_EQ(o.err_lines(), 1) << o.err;
    EXPECT_NE(o.err.find("mapview make --replace"), std::string::npos) << o.err;
    EXPECT_EQ(o.err.find("remove it") == std::string::npos, of_a_map) << o.err;
    if (!of_a_map) fs::remove(path("map/map.json"));
    make("map", "--replace --size 64x48");
    EXPECT_EQ(view().exit_code, 0);
  }
}

// Whatever leads there.
TEST_F(made_maps, are_not_overwritten_by_what_is_seen_of_them) {
  make_small();
  fs::create_symlink(path("map/part0/0_0.jpg"), path("link.jpg"));
  fs::create_directory_symlink(path("map/part0"), path("folder"));
  fs::remove(path("map/part0/1_2.jpg"));
  const auto before = files("map");
  for (const std::string name : {"map/part0/0_0.jpg", "link.jpg", "folder/0_0.jpg",
                                 "map/../map/part1/0_1.jpg", "map/part0/1_2.jpg"}) {
    const outcome o = run_line("mapview view " + path("map") + " --out " + path(name));
    EXPECT_EQ(o.exit_code, 2) << name;
    EXPECT_EQ(o.err_lines(), 1) << o.err;
    EXPECT_NE(o.err.find("is a file of the map"), std::string::npos) << o.err;
  }
  for (const std::string flag : {"--csv", "--svg"})
    EXPECT_EQ(run_line("mapview regions " + path("map") + " " + flag + " " + path("map/map.json"))
                  .exit_code,
              2);
  EXPECT_TRUE(files("map") == before);
  EXPECT_EQ(run_line("mapview view " + path("map") + " --out " + path("0_0.jpg")).exit_code, 1)
      << "of the tile that is missing";
}

TEST_F(made_maps, touch_no_files_of_others) {
  fs::create_directories(path("map/part0"));
  std::ofstream(path("map/part0/notes.txt")) << "mine";
  std::ofstream(path("map/part0/7_8.jpg.bak")) << "mine";
  expect_refused("--size 64x48", "in the way");
  EXPECT_EQ(files("map").size(), 2U);
  make("map", "--replace --size 64x48");
  EXPECT_EQ(files("map").size(), 4U);
  EXPECT_EQ(files("map").at("part0/notes.txt"), "mine");
  EXPECT_EQ(files("map").at("part0/7_8.jpg.bak"), "mine");
  for (const char* const other : {"{\"name\": \"a game\"}", "no JSON", "", "[1]"}) {
    std::ofstream(path("map/map.json")) << other;
    const auto before = files("map");
    expect_refused("--size 64x48", "map.json");
    expect_refused("--replace --size 64x48", "map.json");
    EXPECT_TRUE(files("map") == before) << other;
  }
}

TEST_F(made_maps, may_lie_in_folders_that_are_ready) {
  fs::create_directories(path("map"));
  fs::create_directories(path("disk"));
  fs::create_directory_symlink(path("disk"), path("map/part1"));
  make("map", "--size 128x48 --tile 64x48 --folders 2");
  EXPECT_EQ(files("disk").size(), 1U);
  make("map", "--replace --size 64x48 --tile 64x48 --folders 1");
  EXPECT_EQ(files("disk").size(), 0U);
  EXPECT_TRUE(fs::is_symlink(path("map/part1")));
}

}  // namespace
