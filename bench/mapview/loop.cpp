// SPDX-License-Identifier: Apache-2.0
// mapview_loop MAP SIDE REPEAT: the upper left region of a map in a window of 600 x 600, by a plain
// loop over libjpeg-turbo. Each tile is decoded by one and the same decoder, as small as the
// library itself can make it; of what is still too large the nearest pixel is taken. Less cannot be
// done. Prints the median of REPEAT times, as JSON.
#include <turbojpeg.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include "apps/mapview/file.hpp"
#include "apps/mapview/fragment.hpp"
#include "apps/mapview/map.hpp"

namespace {

using namespace mapview;

constexpr std::uint32_t window_side = 600;

struct loop {
  map_info map;
  std::string root;
  const tjhandle decoder = tjInitDecompress();
  tjscalingfactor factor{1, 1};
  std::vector<std::uint8_t> tile{};
  std::vector<std::uint8_t> window = std::vector<std::uint8_t>(3 * window_side * window_side);

  // The smallest that has at least as many pixels as the window.
  void choose_factor(std::uint32_t side) {
    int count = 0;
    const tjscalingfactor* const all = tjGetScalingFactors(&count);
    for (int i = 0; i < count; ++i) {
      const bool is_enough = std::uint64_t{side} * static_cast<unsigned>(all[i].num) >=
                             std::uint64_t{window_side} * static_cast<unsigned>(all[i].denom);
      if (is_enough && all[i].num * factor.denom < factor.num * all[i].denom) factor = all[i];
    }
  }

  void draw(const view& v, tile_place place) {
    const rectangle to = pixels_of(map, v, place);
    const rectangle area = map.area_of(place);
    const auto bytes = read_file(tile_path(root, map, place));
    int width = 0, height = 0, subsampling = 0, colours = 0;
    if (tjDecompressHeader3(decoder, bytes.data(), bytes.size(), &width, &height, &subsampling,
                            &colours) != 0)
      throw std::runtime_error(tjGetErrorStr2(decoder));
    const int w = TJSCALED(width, factor), h = TJSCALED(height, factor);
    tile.resize(static_cast<std::size_t>(3 * w * h));
    if (tjDecompress2(decoder, bytes.data(), bytes.size(), tile.data(), w, 0, h, TJPF_RGB, 0) != 0)
      throw std::runtime_error(tjGetErrorStr2(decoder));
    // Of the tile in the size that it was decoded in.
    const auto nearest = [](std::uint32_t pixel, std::uint32_t of_map, std::uint32_t begin,
                            std::uint32_t length, int decoded) {
      const std::uint32_t at = pixel * of_map / window_side;
      const std::uint32_t inside = std::max(at, begin) - begin;
      return std::min(inside * static_cast<unsigned>(decoded) / length,
                      static_cast<unsigned>(decoded) - 1);
    };
    for (std::uint32_t y = to.y; y < to.y + to.height; ++y) {
      const std::uint32_t row = nearest(y, v.region.height, area.y, area.height, h);
      const std::uint8_t* const from = &tile[std::size_t{3} * row * static_cast<unsigned>(w)];
      std::uint8_t* const line = &window[std::size_t{3} * y * window_side];
      for (std::uint32_t x = to.x; x < to.x + to.width; ++x) {
        const std::uint32_t column = nearest(x, v.region.width, area.x, area.width, w);
        std::copy_n(from + std::size_t{3} * column, 3, line + std::size_t{3} * x);
      }
    }
  }
};

int run(const char* root, std::uint32_t side, unsigned repeat) {
  loop l{.map = read_map(root), .root = root};
  l.choose_factor(side);
  const view v{{0, 0, side, side}, window_side, window_side};
  const std::vector<tile_place> tiles = tiles_of(l.map, v.region);
  std::vector<double> seconds;
  for (unsigned i = 0; i < repeat; ++i) {
    const auto began = std::chrono::steady_clock::now();
    for (const tile_place t : tiles) l.draw(v, t);
    seconds.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
  }
  std::sort(seconds.begin(), seconds.end());
  std::uint64_t sum = 0;
  for (const std::uint8_t b : l.window) sum += b;
  std::printf("{\"tiles\": %zu, \"seconds\": %.6f, \"mean\": %.2f}\n", tiles.size(),
              seconds[seconds.size() / 2],
              static_cast<double>(sum) / static_cast<double>(l.window.size()));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: mapview_loop MAP SIDE REPEAT\n");
    return 2;
  }
  try {
    return run(argv[1], static_cast<std::uint32_t>(std::strtoul(argv[2], nullptr, 10)),
               std::max(1U, static_cast<unsigned>(std::strtoul(argv[3], nullptr, 10))));
  } catch (const std::exception& e) {
    std::fprintf(stderr, "mapview_loop: %s\n", e.what());
    return 1;
  }
}
