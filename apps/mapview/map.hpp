// SPDX-License-Identifier: Apache-2.0
// A map: a picture of any size, cut into JPEG tiles that lie in folders. (Requirement P16.)
#pragma once
#include <cstdint>
#include <string>

namespace mapview {

struct rectangle {
  std::uint32_t x = 0, y = 0, width = 0, height = 0;
  friend bool operator==(const rectangle&, const rectangle&) = default;
};

// What map.json in the map's folder says.
struct map_info {
  std::uint32_t width = 9600, height = 9600;
  std::uint32_t tile_width = 640, tile_height = 480;
  std::uint32_t folders = 1;  // over which the tiles are spread, "part0" and so on

  [[nodiscard]] std::uint32_t columns() const { return (width + tile_width - 1) / tile_width; }
  [[nodiscard]] std::uint32_t rows() const { return (height + tile_height - 1) / tile_height; }
  [[nodiscard]] std::uint64_t tiles() const { return std::uint64_t{columns()} * rows(); }
  // Neighbours lie in different folders, so that any region is spread over all of them.
  [[nodiscard]] std::uint32_t folder_of(std::uint32_t column, std::uint32_t row) const {
    return (column + row) % folders;
  }
  // What of the map the tile shows; those at the right and lower edge may be smaller.
  [[nodiscard]] rectangle area_of(std::uint32_t column, std::uint32_t row) const;
};

// A map has at most so many: each is a file, and a view of all of it takes a list of them.
inline constexpr std::uint64_t tiles_max = 10'000'000;

[[nodiscard]] std::string folder_path(const std::string& root, std::uint32_t folder);
[[nodiscard]] std::string tile_path(const std::string& root, const map_info& map,
                                    std::uint32_t column, std::uint32_t row);

// Throws strata::user_error: no such map, or not one that this program made.
[[nodiscard]] map_info read_map(const std::string& root);
void write_map(const std::string& root, const map_info& map);

}  // namespace mapview
