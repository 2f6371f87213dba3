// SPDX-License-Identifier: Apache-2.0
// A map: a picture of any size, cut into JPEG tiles that lie in folders. (Requirement P16.)
#pragma once
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace mapview {

struct rectangle {
  std::uint32_t x = 0, y = 0, width = 0, height = 0;
  friend bool operator==(const rectangle&, const rectangle&) = default;
};

// Level 0 is the map in its full size; at level n a pixel is the mean of 2^n x 2^n of those.
struct tile_place {
  std::uint32_t column = 0, row = 0;
  std::uint32_t level = 0;
  friend auto operator<=>(const tile_place&, const tile_place&) = default;
};

// What map.json in the map's folder says.
struct map_info {
  std::uint32_t width = 9600, height = 9600;
  std::uint32_t tile_width = 640, tile_height = 480;
  std::uint32_t folders = 1;  // over which the tiles are spread, "part0" and so on
  std::uint32_t levels = 0;   // smaller copies that there are: levels 1 to so many

  // Of a level: its size in its own pixels (of the last ones only a part may lie in the map), and
  // its tiles.
  [[nodiscard]] std::uint32_t width_at(std::uint32_t level) const { return halved(width, level); }
  [[nodiscard]] std::uint32_t height_at(std::uint32_t level) const { return halved(height, level); }
  [[nodiscard]] std::uint32_t columns(std::uint32_t level = 0) const {
    return (width_at(level) + tile_width - 1) / tile_width;
  }
  [[nodiscard]] std::uint32_t rows(std::uint32_t level = 0) const {
    return (height_at(level) + tile_height - 1) / tile_height;
  }
  [[nodiscard]] std::uint64_t tiles(std::uint32_t level = 0) const {
    return std::uint64_t{columns(level)} * rows(level);
  }
  // Neighbours lie in different folders, so that any region is spread over all of them.
  [[nodiscard]] std::uint32_t folder_of(std::uint32_t column, std::uint32_t row) const {
    return (column + row) % folders;
  }
  // What the tile shows, in pixels of the map; those at the right and lower edge may be smaller.
  [[nodiscard]] rectangle area_of(tile_place tile) const;
  // The same in pixels of the tile's level: where it lies there, and the size of its picture.
  [[nodiscard]] rectangle area_in_level(tile_place tile) const;

 private:
  static std::uint32_t halved(std::uint32_t length, std::uint32_t times) {
    return static_cast<std::uint32_t>(((std::uint64_t{length} - 1) >> times) + 1);
  }
};

// The first level that is one tile; there is none beyond it.
[[nodiscard]] std::uint32_t last_level(const map_info& map);

// A map has at most so many in its full size: each is a file, and a view of all of it takes a list
// of them.
inline constexpr std::uint64_t tiles_max = 10'000'000;

// And at most so many pixels each way.
inline constexpr std::uint32_t map_side_max = 10'000'000;

[[nodiscard]] std::string folder_path(const std::string& root, std::uint32_t folder);
[[nodiscard]] std::string tile_path(const std::string& root, const map_info& map, tile_place tile);
// The tile that a file of this name is, in whatever map.
[[nodiscard]] std::optional<tile_place> tile_named(std::string_view name);

// Throws strata::user_error: no such map, or not one that this program made.
[[nodiscard]] map_info read_map(const std::string& root);
void write_map(const std::string& root, const map_info& map);

// Where an output would take the place of a tile or of map.json, though by another path: throws
// strata::user_error, which names the option that gave the path.
void refuse_to_overwrite(const std::string& root, const map_info& map, const std::string& option,
                         const std::string& output);

// Whether such a file is of this program, even if read_map() refuses its numbers: other programs
// have files of that name, too. One that is cut short cannot be told from theirs.
[[nodiscard]] bool is_of_a_map(const std::string& map_json);

}  // namespace mapview
