// SPDX-License-Identifier: Apache-2.0
// How often a map waits for the disk, and when.
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <functional>
#include <strata/runtime.hpp>
#include <string>

#include "apps/mapview/make.hpp"
#include "mapview_fixture.hpp"

namespace {

namespace fs = std::filesystem;

std::atomic<int> files_flushed{0};
std::atomic<int> disks_flushed{0};
std::function<void()> at_flush_of_disk;

class flushed_maps : public apps_test::maps {
 protected:
  flushed_maps() {
    files_flushed = disks_flushed = 0;
    at_flush_of_disk = [this] {
      EXPECT_FALSE(fs::exists(path("map/map.json")));
      const fs::recursive_directory_iterator all(path("map"));
      tiles_there =
          std::count_if(begin(all), end(all), [](auto& e) { return e.is_regular_file(); });
    };
  }
  ~flushed_maps() override { at_flush_of_disk = nullptr; }

  std::ptrdiff_t tiles_there = 0;
};

TEST_F(flushed_maps, wait_for_each_disk_once_before_they_have_a_name) {
  const mapview::map_info map{
      .width = 400, .height = 300, .tile_width = 64, .tile_height = 48, .folders = 3, .levels = 2};
  strata::runtime runtime({.workers = 2});
  runtime.run([&] { mapview::make_map(path("map"), map, nullptr, {}); });
  EXPECT_EQ(disks_flushed, 1) << "all folders lie on one";
  EXPECT_EQ(tiles_there, static_cast<std::ptrdiff_t>(map.tiles() + map.tiles(1) + map.tiles(2)));
  EXPECT_EQ(files_flushed, 1) << "map.json";
}

}  // namespace

// In place of the C library's, in this program.
extern "C" int fsync(int fd) {
  ++files_flushed;
  return static_cast<int>(::syscall(SYS_fsync, fd));
}
extern "C" int syncfs(int fd) noexcept {
  ++disks_flushed;
  if (at_flush_of_disk) at_flush_of_disk();
  return static_cast<int>(::syscall(SYS_syncfs, fd));
}
