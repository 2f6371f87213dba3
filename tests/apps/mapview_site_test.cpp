// SPDX-License-Identifier: Apache-2.0
// What one request that goes wrong means for others.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <strata/error.hpp>
#include <strata/runtime.hpp>
#include <string>

#include "apps/mapview/site.hpp"
#include "apps/mapview/tile_threads.hpp"

namespace {

using namespace mapview;

// Loads a grey map; or throws what it is told to.
class moody_loader final : public loader {
 public:
  explicit moody_loader(const map_info& map) : map_(map) {}
  void load(const view& v, const tile_grid& tiles,
            const std::function<void(const fragment&)>& take) override {
    if (problem != nullptr) std::rethrow_exception(problem);
    for (std::uint32_t i = 0; i < tiles.size(); ++i) {
      const tile_place tile = tiles.at(i);
      const rectangle pixels = pixels_of(map_, v, tile);
      ++loaded;
      take({tile, pixels, false, picture(pixels.width, pixels.height)});
    }
  }
  std::exception_ptr problem;
  std::uint64_t loaded = 0;

 private:
  const map_info map_;
};

http_request a_view_of(const std::string& width) {
  http_request r;
  r.method = "GET";
  r.path = "/view";
  r.host = "localhost";
  r.is_awaited = [] { return true; };
  for (const char* const zero : {"x", "y"}) r.parameters.emplace(zero, "0");
  for (const char* const length : {"height", "to_width", "to_height"})
    r.parameters.emplace(length, "50");
  r.parameters.emplace("width", width);
  return r;
}

std::string name_of(const std::string& root) {
  const map_info map{.width = 100, .height = 100, .tile_width = 64, .tile_height = 48};
  moody_loader tiles(map);
  http_request r;
  r.method = "GET";
  r.path = "/map.json";
  r.host = "localhost";
  r.is_awaited = [] { return true; };
  strata::runtime rt;
  return rt.run([&] {
    site s(root, map, tiles, [](const std::exception_ptr&) {});
    return nlohmann::json::parse(s.answer(r).body).at("name").get<std::string>();
  });
}

TEST(map_site, names_the_map_as_the_user_does) {
  namespace fs = std::filesystem;
  std::string pattern = testing::TempDir() + "mapview-name-XXXXXX";
  const fs::path folder = ::mkdtemp(pattern.data());
  fs::create_directories(folder / "world/part");
  fs::create_directory_symlink(folder / "world/part", folder / "link");
  EXPECT_EQ(name_of(folder / "world"), "world");
  EXPECT_EQ(name_of(folder / "world/"), "world");
  EXPECT_EQ(name_of(folder / "link"), "link");
  EXPECT_EQ(name_of(folder / "world/part/.."), "world");
  EXPECT_EQ(name_of(folder / "link/.."), "world");
  EXPECT_EQ(name_of(folder / "link/../"), "world");
  fs::remove_all(folder);
}

TEST(map_site, answers_on_after_a_request_that_went_wrong) {
  const map_info map{.width = 100, .height = 100, .tile_width = 64, .tile_height = 48};
  moody_loader tiles(map);
  strata::runtime rt;
  rt.run([&] {
    int told = 0;
    site s("map", map, tiles, [&](const std::exception_ptr&) { ++told; });
    EXPECT_EQ(s.answer(a_view_of("50")).status, 200);
    testing::internal::CaptureStderr();
    tiles.problem = std::make_exception_ptr(std::logic_error("what nobody expects"));
    const http_answer a = s.answer(a_view_of("50"));
    EXPECT_EQ(a.status, 500);
    EXPECT_EQ(a.body, "what nobody expects\n");
    tiles.problem = nullptr;
    EXPECT_EQ(s.answer(a_view_of("101")).status, 400);
    EXPECT_EQ(s.answer(a_view_of("50")).status, 200);
    EXPECT_EQ(testing::internal::GetCapturedStderr(),
              "mapview: /view was not answered: what nobody expects\n");
    EXPECT_EQ(told, 0);
    EXPECT_EQ(s.failed(), 1U);
    EXPECT_EQ(s.pictures(), 2U);
    // With the job the server is over.
    tiles.problem = std::make_exception_ptr(strata::node_lost_error(1, "node 1 is lost"));
    EXPECT_EQ(s.answer(a_view_of("50")).status, 500);
    EXPECT_EQ(told, 1);
  });
}

http_request a_view_of(const rectangle& region, const std::string& window) {
  http_request r = a_view_of(std::to_string(region.width));
  r.parameters.erase("height");
  r.parameters.emplace("height", std::to_string(region.height));
  for (const char* const side : {"to_width", "to_height"}) {
    r.parameters.erase(side);
    r.parameters.emplace(side, window);
  }
  return r;
}

// All smaller copies are there, and none will do for a window that is nearly as wide as the region.
TEST(map_site, refuses_pictures_of_more_tiles_than_anybody_looks_at) {
  map_info map{.width = 10'000, .height = map_side_max};
  map.levels = last_level(map);
  moody_loader tiles(map);
  strata::runtime rt;
  rt.run([&] {
    site s("map", map, tiles, [](const std::exception_ptr&) {});
    const http_answer a = s.answer(a_view_of({0, 0, 8191, map.height}, "4096"));
    EXPECT_EQ(a.status, 400);
    EXPECT_NE(a.body.find("more than 10000 tiles"), std::string::npos) << a.body;
    EXPECT_EQ(tiles.loaded, 0U);
    EXPECT_EQ(s.answer(a_view_of({0, 0, map.width, map.height}, "500")).status, 200);
    // 100 x 100 of 64 x 48 pixels, and one more.
    const map_info even{.width = 10'000, .height = 10'000, .tile_width = 64, .tile_height = 48};
    moody_loader small(even);
    site t("map", even, small, [](const std::exception_ptr&) {});
    EXPECT_EQ(t.answer(a_view_of({0, 0, 6400, 4800}, "64")).status, 200);
    EXPECT_EQ(small.loaded, site::picture_tiles_max);
    EXPECT_EQ(t.answer(a_view_of({0, 0, 6401, 4800}, "64")).status, 400);
    EXPECT_EQ(small.loaded, site::picture_tiles_max);
  });
}

TEST(map_site, leaves_a_picture_whose_client_has_gone) {
  const map_info map{.width = 6400, .height = 4800, .tile_width = 64, .tile_height = 48};
  moody_loader tiles(map);
  strata::runtime rt;
  rt.run([&] {
    site s("map", map, tiles, [](const std::exception_ptr&) {});
    http_request r = a_view_of({0, 0, map.width, map.height}, "64");
    r.is_awaited = [&] { return tiles.loaded < 5; };
    EXPECT_EQ(s.answer(r).status, 503);
    EXPECT_EQ(tiles.loaded, 5U);
    EXPECT_EQ(s.failed(), 0U);
    EXPECT_EQ(s.pictures(), 0U);
    r.is_awaited = [] { return true; };
    EXPECT_EQ(s.answer(r).status, 200);
  });
}

TEST(tile_threads, load_all_in_order_but_no_more_ahead_than_are_taken) {
  strata::runtime rt;
  rt.run([] {
    constexpr std::uint32_t many = 20 * tiles_at_once;
    std::atomic<std::uint32_t> loaded{0};
    const auto load = [&](std::uint32_t i) noexcept {
      ++loaded;
      return i;
    };
    std::uint32_t taken = 0, ahead = 0;
    load_ahead(many, load, [&](std::uint32_t i) {
      EXPECT_EQ(i, taken++);
      ahead = std::max(ahead, loaded - i);
    });
    EXPECT_EQ(taken, many);
    EXPECT_LE(ahead, tiles_at_once);
    EXPECT_EQ(loaded, many);
    loaded = 0;
    EXPECT_THROW(load_ahead(many, load, [](std::uint32_t) { throw not_awaited(); }), not_awaited);
    EXPECT_LE(loaded, tiles_at_once);
    load_ahead(0, load, [](std::uint32_t) { FAIL(); });
  });
}

}  // namespace
