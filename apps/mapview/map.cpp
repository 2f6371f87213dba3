// SPDX-License-Identifier: Apache-2.0
#include "apps/mapview/map.hpp"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <strata/error.hpp>

#include "apps/common/output_file.hpp"

namespace mapview {

rectangle map_info::area_of(std::uint32_t column, std::uint32_t row) const {
  const std::uint32_t x = column * tile_width, y = row * tile_height;
  return {x, y, std::min(tile_width, width - x), std::min(tile_height, height - y)};
}

std::string folder_path(const std::string& root, std::uint32_t folder) {
  return root + "/part" + std::to_string(folder);
}

std::string tile_path(const std::string& root, const map_info& map, std::uint32_t column,
                      std::uint32_t row) {
  return folder_path(root, map.folder_of(column, row)) + "/" + std::to_string(row) + "_" +
         std::to_string(column) + ".jpg";
}

map_info read_map(const std::string& root) {
  const std::string path = root + "/map.json";
  std::ifstream in(path);
  if (!in)
    throw strata::user_error("no map at '" + root + "': cannot read " + path +
                             "; make one with mapview make");
  std::ostringstream text;
  text << in.rdbuf();
  const auto bad = [&](const std::string& why) {
    return strata::user_error(path + ": " + why + "; make the map again with mapview make");
  };
  const nlohmann::json j = nlohmann::json::parse(text.str(), nullptr, false);
  if (!j.is_object()) throw bad("not a JSON object");
  map_info m;
  const auto take = [&](const char* name, std::uint32_t& value, std::uint32_t last) {
    if (!j.contains(name) || !j[name].is_number_unsigned())
      throw bad(std::string("no number '") + name + "'");
    const auto n = j[name].get<std::uint64_t>();
    if (n == 0 || n > last) throw bad(std::string("'") + name + "' is out of range");
    value = static_cast<std::uint32_t>(n);
  };
  take("width", m.width, 10'000'000);
  take("height", m.height, 10'000'000);
  take("tile_width", m.tile_width, 16'384);
  take("tile_height", m.tile_height, 16'384);
  take("folders", m.folders, 65'536);
  if (m.tiles() > tiles_max)
    throw bad("has " + std::to_string(m.tiles()) + " tiles, more than " +
              std::to_string(tiles_max));
  return m;
}

void write_map(const std::string& root, const map_info& m) {
  apps::output_file out(root + "/map.json");
  out.write(nlohmann::json{{"width", m.width},
                           {"height", m.height},
                           {"tile_width", m.tile_width},
                           {"tile_height", m.tile_height},
                           {"folders", m.folders}}
                .dump(2) +
            "\n");
  out.commit();
}

}  // namespace mapview
