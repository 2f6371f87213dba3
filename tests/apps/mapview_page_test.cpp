// SPDX-License-Identifier: Apache-2.0
// The page of `mapview serve` in a real browser, where Chromium is installed (docs/testing.md).
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <sstream>
#include <string>

#include "apps/mapview/map.hpp"
#include "apps/mapview/picture.hpp"
#include "browser.hpp"
#include "mapview_fixture.hpp"
#include "picture_files.hpp"
#include "running_program.hpp"

namespace {

using namespace mapview;
using apps_test::browser;
using apps_test::outcome;
using apps_test::read_picture;
using apps_test::running;

constexpr int width = 1000, height = 700;

class map_page : public apps_test::maps {
 protected:
  void SetUp() override {
    program_ = browser::installed();
    if (!program_) GTEST_SKIP() << "no Chromium here";
    const outcome o = apps_test::run_line("mapview make " + path("map") +
                                          " --size 3000x2000 --tile 320x240 --folders 2");
    ASSERT_EQ(o.exit_code, 0) << o.err;
  }
  void serve(const std::string& command) {
    server = std::make_unique<running>(command + " serve " + path("map"));
    address = server->line();
    chromium = std::make_unique<browser>(*program_, width, height);
  }
  void open(const std::string& at = {}) {
    chromium->open("about:blank");  // otherwise another place is the same, still open page
    chromium->open(address + at);
    settle();
  }
  // All pieces are there and nothing moves; then the address tells where we are.
  void settle() {
    EXPECT_EQ(chromium->wait_for("document.documentElement.dataset.state", "ready"), "ready");
  }
  struct place {
    double x, y, zoom;
  };
  place where() {
    settle();
    // The page writes the address some time after it has moved: once more, and it is there.
    (void)chromium->value("new Promise(f => setTimeout(f, 400))");
    const std::string hash = chromium->value("location.hash");
    std::array<double, 3> n{};
    char comma = 0;
    std::istringstream(hash.substr(std::min<std::size_t>(1, hash.size()))) >> n[0] >> comma >>
        n[1] >> comma >> n[2];
    return {n[0], n[1], n[2]};
  }
  void expect_at(const place& expected) {
    const place p = where();
    EXPECT_NEAR(p.x, expected.x, 2);
    EXPECT_NEAR(p.y, expected.y, 2);
    EXPECT_NEAR(p.zoom, expected.zoom, 0.02 * expected.zoom);
  }
  // What is on the screen. With MAPVIEW_SCREENSHOTS=<folder> the pictures stay there.
  picture screen(const std::string& name) {
    const char* const kept = std::getenv("MAPVIEW_SCREENSHOTS");
    const std::string file = (kept != nullptr ? std::string(kept) : folder) + "/" + name + ".png";
    chromium->save_picture(file);
    return read_picture(file);
  }
  // How far the middle of the screen, where no panel lies, is from what `mapview view` makes of
  // the region that should be there: the mean of all differences, in 255ths.
  double unlike(const picture& shown, const std::string& region) {
    constexpr std::uint32_t side = 300;
    const outcome o =
        apps_test::run_line("mapview view " + path("map") + " --out " + path("expected.png") +
                            " --window 300x300 --region " + region);
    EXPECT_EQ(o.exit_code, 0) << o.err;
    const picture expected = read_picture(path("expected.png"));
    double sum = 0;
    for (std::uint32_t y = 0; y < side; ++y) {
      for (std::uint32_t x = 0; x < side; ++x) {
        for (int c = 0; c < 3; ++c)
          sum += std::abs(expected.at(x, y)[c] -
                          shown.at((width - side) / 2 + x, (height - side) / 2 + y)[c]);
      }
    }
    return sum / (3.0 * side * side);
  }
  void expect_quiet_end() {
    server->signal(SIGINT);
    const outcome o = server->end();
    EXPECT_EQ(o.exit_code, 0);
    EXPECT_EQ(o.err, "");
  }

  std::unique_ptr<running> server;
  std::unique_ptr<browser> chromium;
  std::string address;

 private:
  std::optional<std::string> program_;
};

const std::string bin = APPS_BIN_DIR "/";

TEST_F(map_page, shows_what_is_in_the_files) {
  serve("mapview");
  open();
  const place whole = where();
  EXPECT_EQ(whole.x, 1500);
  EXPECT_EQ(whole.y, 1000);
  EXPECT_LT(unlike(screen("whole"), std::to_string(std::lround(1500 - 150 / whole.zoom)) + "," +
                                        std::to_string(std::lround(1000 - 150 / whole.zoom)) + "," +
                                        std::to_string(std::lround(300 / whole.zoom)) + "," +
                                        std::to_string(std::lround(300 / whole.zoom))),
            12);
  // Pixel for pixel but for two times JPEG.
  open("#1600,900,1");
  EXPECT_LT(unlike(screen("close"), "1450,750,300,300"), 4);
  EXPECT_GT(unlike(screen("close"), "1150,750,300,300"), 12);  // elsewhere it looks different
  expect_quiet_end();
}

TEST_F(map_page, follows_mouse_and_keys) {
  serve("mapview");
  open("#1500,1000,1");
  chromium->drag(600, 400, -200, 100);
  expect_at({1700, 900, 1});
  // What is under the pointer stays there: 200 to the right of the middle, 100 below.
  chromium->wheel(700, 450, -200);
  const double factor = std::exp(0.5);
  expect_at({1900 - 200 / factor, 1000 - 100 / factor, factor});
  open("#1500,1000,0.5");
  chromium->click(width / 2 + 100, height / 2, 2);
  expect_at({1500 + 200 - 100, 1000, 1});
  chromium->key("ArrowLeft");
  expect_at({1600 - 0.2 * width, 1000, 1});
  chromium->key("+", "+");
  expect_at({1400, 1000, 1.6});
  chromium->key("-", "-");
  expect_at({1400, 1000, 1});
  chromium->key("0", "0");
  expect_at({1500, 1000, 0.92 * width / 3000});
  expect_quiet_end();
}

TEST_F(map_page, keeps_moving_when_thrown) {
  serve("mapview");
  open("#1500,1000,1");
  const std::string throws =
      "for (const [type, x, at] of [['down', 600, 0], ['move', 580, 1], ['move', 500, 2], ['up', "
      "500, 2]]) document.getElementById('map').dispatchEvent(Object.defineProperty(new "
      "PointerEvent('pointer' + type, {pointerId: 1, clientX: x, clientY: 300, bubbles: true}), "
      "'timeStamp', {value: 1000 + 20 * at}))";
  // Made in the page, for the time between two moves of a real mouse depends on the machine.
  (void)chromium->value("Element.prototype.setPointerCapture = () => {}; " + throws);
  EXPECT_GT(where().x, 1500 + 100 + 50);
  expect_quiet_end();
}

TEST_F(map_page, jumps_on_the_small_map) {
  serve("mapview");
  open("#1500,1000,1");
  const auto at = chromium->value(
      "(() => { const r = document.querySelector('#overview canvas').getBoundingClientRect(); "
      "return [r.left, r.top, r.width, r.height]; })()");
  chromium->click(std::lround(at[0].get<double>() + at[2].get<double>() / 3),
                  std::lround(at[1].get<double>() + at[3].get<double>() / 2));
  const place p = where();
  EXPECT_NEAR(p.x, 1000, 20);
  EXPECT_NEAR(p.y, 1000, 20);
  EXPECT_LT(unlike(screen("jumped"), std::to_string(std::lround(p.x) - 150) + "," +
                                         std::to_string(std::lround(p.y) - 150) + ",300,300"),
            6);
  expect_quiet_end();
}

TEST_F(map_page, works_with_two_nodes) {
  serve("strata run -n 2 --workers 1 " + bin + "mapview");
  open("#1600,900,1");
  EXPECT_LT(unlike(screen("nodes"), "1450,750,300,300"), 4);
  const std::string facts = chromium->value("document.getElementById('facts').textContent");
  EXPECT_NE(facts.find("2 nodes"), std::string::npos) << facts;
  expect_quiet_end();
}

TEST_F(map_page, says_what_is_missing_and_when_nobody_answers) {
  const map_info map = read_map(path("map"));
  std::filesystem::remove(tile_path(path("map"), map, {4, 4}));
  serve("mapview");
  const std::string notice =
      "document.getElementById('notice').hidden ? '' : "
      "document.getElementById('notice').textContent.slice(0, 11)";
  open("#400,1000,2");
  EXPECT_EQ(chromium->value(notice), "");
  open("#1440,1080,2");
  EXPECT_EQ(chromium->wait_for(notice, "Tiles are m"), "Tiles are m");
  const picture shown = screen("missing");
  const std::uint8_t* const middle = shown.at(width / 2, height / 2);
  EXPECT_GT(middle[0], middle[1] - 1);  // red and white stripes
  server->signal(SIGINT);
  EXPECT_EQ(server->end().exit_code, 1);
  chromium->key("0", "0");
  (void)chromium->value("location.hash = '#2700,200,2'");
  EXPECT_EQ(chromium->wait_for(notice, "The server "), "The server ");
  EXPECT_EQ(chromium->value("document.documentElement.dataset.state"), "error");
  (void)screen("alone");
}

}  // namespace
