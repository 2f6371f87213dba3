// SPDX-License-Identifier: Apache-2.0
#include "apps/mapview/map.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <strata/error.hpp>
#include <system_error>

#include "apps/common/output_file.hpp"
#include "apps/common/output_target.hpp"
#include "apps/mapview/file.hpp"

namespace mapview {

rectangle map_info::area_in_level(tile_place tile) const {
  const std::uint32_t x = tile.column * tile_width, y = tile.row * tile_height;
  return {x, y, std::min(tile_width, width_at(tile.level) - x),
          std::min(tile_height, height_at(tile.level) - y)};
}

rectangle map_info::area_of(tile_place tile) const {
  const rectangle r = area_in_level(tile);
  const std::uint32_t x = r.x << tile.level, y = r.y << tile.level;
  const auto length = [&](std::uint32_t pixels, std::uint32_t most) {
    return static_cast<std::uint32_t>(
        std::min(std::uint64_t{pixels} << tile.level, std::uint64_t{most}));
  };
  return {x, y, length(r.width, width - x), length(r.height, height - y)};
}

std::uint32_t last_level(const map_info& map) {
  std::uint32_t level = 0;
  while (map.tiles(level) > 1) ++level;
  return level;
}

std::string folder_path(const std::string& root, std::uint32_t folder) {
  return root + "/part" + std::to_string(folder);
}

std::string tile_path(const std::string& root, const map_info& map, tile_place tile) {
  const std::string level =
      tile.level == 0 ? std::string() : "level" + std::to_string(tile.level) + "_";
  return folder_path(root, map.folder_of(tile.column, tile.row)) + "/" + level +
         std::to_string(tile.row) + "_" + std::to_string(tile.column) + ".jpg";
}

namespace {
// Both take what they find from the front.
bool take_word(std::string_view& name, std::string_view word) {
  if (name.substr(0, word.size()) != word) return false;
  name.remove_prefix(word.size());
  return true;
}
bool take_number(std::string_view& name, std::uint32_t& number) {
  const auto read = std::from_chars(name.data(), name.data() + name.size(), number);
  if (read.ec != std::errc()) return false;
  name.remove_prefix(static_cast<std::size_t>(read.ptr - name.data()));
  return true;
}
}  // namespace

std::optional<tile_place> tile_named(std::string_view name) {
  tile_place t;
  if (take_word(name, "level") && !(take_number(name, t.level) && take_word(name, "_")))
    return std::nullopt;
  if (take_number(name, t.row) && take_word(name, "_") && take_number(name, t.column) &&
      name == ".jpg")
    return t;
  return std::nullopt;
}

void refuse_to_overwrite(const std::string& root, const map_info& map, const std::string& option,
                         const std::string& output) {
  namespace fs = std::filesystem;
  const fs::path to = apps::target_of(output).path;
  const auto is_in_place_of = [&](const fs::path& own) {
    const fs::path folder = to.parent_path();
    std::error_code none;
    return to.filename() == own.filename() &&
           fs::equivalent(folder.empty() ? "." : folder, own.parent_path(), none);
  };
  const std::optional<tile_place> tile = tile_named(to.filename().string());
  if (is_in_place_of(fs::path(root) / "map.json") ||
      (tile && is_in_place_of(tile_path(root, map, *tile))))
    throw strata::user_error(option + ": " + output + " is a file of the map; choose another path");
}

namespace {
bool tells_of_a_map(const nlohmann::json& j) {
  return j.is_object() && j.contains("tile_width") && j.contains("folders");
}

// What is no JSON is discarded(). Throws strata::user_error where there is no such file.
nlohmann::json json_of(const std::string& map_json) {
  constexpr std::size_t bytes_max = std::size_t{1} << 20;  // it takes a hundred
  return nlohmann::json::parse(read_plain_file(map_json, bytes_max), nullptr, false);
}
}  // namespace

bool is_of_a_map(const std::string& map_json) {
  try {
    return tells_of_a_map(json_of(map_json));
  } catch (const strata::user_error&) {
    return false;
  }
}

map_info read_map(const std::string& root) {
  const std::string path = root + "/map.json";
  nlohmann::json j;
  try {
    j = json_of(path);
  } catch (const strata::user_error& e) {
    throw strata::user_error("no map at '" + root + "': " + e.what() +
                             "; make one with mapview make");
  }
  const auto bad = [&](const std::string& why) {
    // Make refuses to remove what may be of another program.
    return strata::user_error(path + ": " + why + "; " +
                              (tells_of_a_map(j) ? "" : "remove it and ") +
                              "make the map again with mapview make --replace");
  };
  if (!j.is_object()) throw bad("not a JSON object");
  map_info m;
  const auto take = [&](const char* name, std::uint32_t& value, std::uint32_t last) {
    if (!j.contains(name) || !j[name].is_number_unsigned())
      throw bad(std::string("no number '") + name + "'");
    const auto n = j[name].get<std::uint64_t>();
    if (n == 0 || n > last) throw bad(std::string("'") + name + "' is out of range");
    value = static_cast<std::uint32_t>(n);
  };
  take("width", m.width, map_side_max);
  take("height", m.height, map_side_max);
  take("tile_width", m.tile_width, 16'384);
  take("tile_height", m.tile_height, 16'384);
  take("folders", m.folders, 65'536);
  if (m.tiles() > tiles_max)
    throw bad("has " + std::to_string(m.tiles()) + " tiles, more than " +
              std::to_string(tiles_max));
  // Maps that were made before there were levels do not speak of them.
  if (!j.contains("levels")) return m;
  const nlohmann::json& levels = j["levels"];
  if (!levels.is_number_unsigned()) throw bad("'levels' is not a number");
  const std::uint32_t last = last_level(m);
  if (levels.get<std::uint64_t>() > last)
    throw bad("'levels' says " + levels.dump() + ", but a map of that size has at most " +
              std::to_string(last));
  m.levels = levels.get<std::uint32_t>();
  return m;
}

void write_map(const std::string& root, const map_info& m) {
  apps::output_file out(root + "/map.json");
  nlohmann::json j{{"width", m.width},
                   {"height", m.height},
                   {"tile_width", m.tile_width},
                   {"tile_height", m.tile_height},
                   {"folders", m.folders}};
  if (m.levels != 0) j["levels"] = m.levels;
  out.write(j.dump(2) + "\n");
  out.commit();
}

}  // namespace mapview
