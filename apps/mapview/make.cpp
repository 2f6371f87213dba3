// SPDX-License-Identifier: Apache-2.0
#include "apps/mapview/make.hpp"

#include <cstring>
#include <filesystem>
#include <strata/error.hpp>
#include <strata/parallel.hpp>

#include "apps/common/output_file.hpp"
#include "apps/mapview/terrain.hpp"

namespace mapview {
namespace {

picture cut(const picture& from, const rectangle& area) {
  picture p(area.width, area.height);
  for (std::uint32_t y = 0; y < area.height; ++y)
    std::memcpy(p.at(0, y), from.at(area.x, area.y + y), std::size_t{3} * area.width);
  return p;
}

}  // namespace

void make_map(const std::string& root, const map_info& map, const picture* from, int quality) {
  namespace fs = std::filesystem;
  std::error_code problem;
  fs::remove(root + "/map.json", problem);
  for (std::uint32_t f = 0; f < map.folders; ++f) {
    fs::create_directories(folder_path(root, f), problem);
    if (problem)
      throw strata::user_error(folder_path(root, f) + ": cannot be made: " + problem.message());
  }
  const std::uint32_t columns = map.columns();
  strata::parallel_for(std::uint64_t{0}, map.tiles(), [&](std::uint64_t i) {
    const auto column = static_cast<std::uint32_t>(i % columns);
    const auto row = static_cast<std::uint32_t>(i / columns);
    const rectangle area = map.area_of(column, row);
    const picture p =
        from != nullptr ? cut(*from, area) : draw_terrain(map.width, map.height, area);
    const std::vector<unsigned char> bytes = encode_jpeg(p, quality);
    apps::output_file out(tile_path(root, map, column, row));
    out.write({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    out.commit();
  });
  write_map(root, map);
}

}  // namespace mapview
