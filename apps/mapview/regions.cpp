// SPDX-License-Identifier: Apache-2.0
#include "apps/mapview/regions.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <vector>

#include "apps/common/output_file.hpp"
#include "apps/mapview/missing_tiles.hpp"
#include "apps/mapview/viewer.hpp"

namespace mapview {
namespace {

constexpr std::array<std::uint32_t, 7> region_sides{600, 1200, 2400, 3000, 4800, 6000, 9600};

struct timing {
  std::uint32_t side;
  std::size_t tiles;
  double seconds;  // median
};

std::string svg_of(const std::vector<timing>& all) {
  double most = 1e-9;
  for (const timing& t : all) most = std::max(most, t.seconds);
  std::string text =
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"480\" height=\"260\" "
      "font-family=\"sans-serif\" font-size=\"11\">\n"
      "<text x=\"10\" y=\"16\">time to show regions in a window of 600 x 600</text>\n";
  for (std::size_t i = 0; i < all.size(); ++i) {
    const double height = 180 * all[i].seconds / most;
    const double x = 20 + 64.0 * static_cast<double>(i);
    char line[400];
    std::snprintf(
        line, sizeof line,
        "<rect x=\"%.1f\" y=\"%.1f\" width=\"40\" height=\"%.1f\" fill=\"#4078a8\"/>\n"
        "<text x=\"%.1f\" y=\"%.1f\">%.1f ms</text>\n"
        "<text x=\"%.1f\" y=\"238\">%u</text><text x=\"%.1f\" y=\"252\">%zu tiles</text>\n",
        x, 222 - height, height, x, 216 - height, all[i].seconds * 1e3, x, all[i].side, x,
        all[i].tiles);
    text += line;
  }
  return text + "</svg>\n";
}

// Made now, so that one that cannot be written is reported before the work.
std::unique_ptr<apps::output_file> begin_file(const apps::program& p, const std::string& path) {
  if (path.empty() || !p.is_first_node()) return nullptr;
  return std::make_unique<apps::output_file>(path);
}
void finish_file(apps::output_file* file, const std::string& text) {
  if (file == nullptr) return;
  file->write(text);
  file->commit();
}

std::string csv_of(const std::vector<timing>& all) {
  std::string text = "region,side_px,tiles,seconds\n";
  for (std::size_t i = 0; i < all.size(); ++i) {
    const timing& t = all[i];
    char line[100];
    std::snprintf(line, sizeof line, "%zu,%u,%zu,%.6f\n", i + 1, t.side, t.tiles, t.seconds);
    text += line;
  }
  return text;
}

}  // namespace

int time_regions(apps::program& p, const regions_wanted& r, const std::function<map_info()>& map,
                 const loader_maker& loader_for) {
  const std::unique_ptr<apps::output_file> csv = begin_file(p, r.csv), svg = begin_file(p, r.svg);
  std::optional<missing_tiles> missing;  // regions overlap
  const std::vector<timing> all = p.timed([&] {
    const map_info m = map();
    if (!r.csv.empty()) refuse_to_overwrite(r.root, m, "--csv", r.csv);
    if (!r.svg.empty()) refuse_to_overwrite(r.root, m, "--svg", r.svg);
    missing.emplace(r.root, m);
    if (m.width < region_sides.back() || m.height < region_sides.back())
      throw strata::user_error("the paper's regions need a map of 9600 x 9600 pixels");
    const auto tiles = loader_for(m);
    viewer window(m, *tiles);
    std::vector<timing> found;
    for (const std::uint32_t side : region_sides) {
      std::vector<double> seconds;
      std::size_t used = 0;
      for (unsigned i = 0; i < r.repeat; ++i) {
        const auto began = std::chrono::steady_clock::now();
        const viewer::shown s = window.show({{0, 0, side, side}, 600, 600});
        seconds.push_back(
            std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
        used = s.tiles;
        missing->note(s);
      }
      std::sort(seconds.begin(), seconds.end());
      found.push_back({side, used, seconds[seconds.size() / 2]});
    }
    return found;
  });
  nlohmann::json list = nlohmann::json::array();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const timing& t = all[i];
    std::printf("region %zu: %u x %u pixels, %zu tiles: %.2f ms\n", i + 1, t.side, t.side, t.tiles,
                t.seconds * 1e3);
    list.push_back({{"side", t.side}, {"tiles", t.tiles}, {"seconds", t.seconds}});
  }
  finish_file(csv.get(), csv_of(all));
  finish_file(svg.get(), svg_of(all));
  const unreadable_tiles tiles = missing->count();
  return p.finish({{"map", r.root}, {"repeat", r.repeat}}, {{"regions", list}}, is_whole(tiles),
                  why_not_whole(tiles), exit_code_of(tiles));
}

}  // namespace mapview
