// SPDX-License-Identifier: Apache-2.0
// What one request that goes wrong means for others.
#include <gtest/gtest.h>

#include <exception>
#include <functional>
#include <stdexcept>
#include <strata/error.hpp>
#include <strata/runtime.hpp>
#include <string>

#include "apps/mapview/site.hpp"

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
      take({tile, pixels, false, picture(pixels.width, pixels.height)});
    }
  }
  std::exception_ptr problem;

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

}  // namespace
