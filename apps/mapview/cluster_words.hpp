// SPDX-License-Identifier: Apache-2.0
// What nodes say to each other that show a map together.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <strata/message.hpp>
#include <vector>

#include "apps/mapview/fragment.hpp"

namespace mapview {

// What travels to the nodes.
struct order {
  strata::endpoint_id viewer;
  strata::endpoint_id owner;  // on the node that answers for this part
  map_info map;
  view shown;
  tile_grid tiles;
  std::uint32_t parts = 1, part = 0;
  std::array<char, 1024> root{};

  [[nodiscard]] std::uint32_t part_of(tile_place tile) const {
    return map.folder_of(tile.column, tile.row) % parts;
  }
};
enum class found : std::uint32_t {
  whole,
  missing,
  out_of_memory,
  all_asked,  // no tile: whoever has asked the nodes has their answers
};
// What a fragment's message begins with; its pixels follow if it is whole or missing.
struct fragment_head {
  tile_place tile;
  rectangle pixels;
  found how;
};

// What the owner of a tile hears that was not found where it was to be loaded; and at the end, how
// many there have been.
struct not_found {
  tile_place tile;
  bool is_end = false;
  std::uint32_t all = 0;
};

[[nodiscard]] std::vector<std::byte> packed(const fragment& f);
// Throws strata::error where the message has another size than its head says.
[[nodiscard]] fragment unpacked(const strata::message& m, const fragment_head& head);

// Which tiles somebody is asked for that were not found where they should lie, and the answer.
struct some_tiles {
  static constexpr std::uint32_t most = 1000;  // of those that fit into a call
  std::uint32_t count = 0;
  std::array<std::uint32_t, most> numbers{};  // among those of the order
};
struct tiles_found {
  std::array<bool, some_tiles::most> here{};
  [[nodiscard]] std::uint32_t count() const {
    return static_cast<std::uint32_t>(std::count(here.begin(), here.end(), true));
  }
};

}  // namespace mapview
