// SPDX-License-Identifier: Apache-2.0
// mapview_loop MAP SIDE REPEAT: the upper left region of a map in a window of 600 x 600, by a plain
// loop over libjpeg-turbo. Each tile is read into the same memory and decoded by one and the same
// decoder, as small as the library itself can make it; of what is still too large the nearest pixel
// is taken. Where that lies is calculated once for each row and column of a tile, so that for a
// pixel nothing is left but to copy it. Prints the median of REPEAT times, as JSON.
#include <fcntl.h>
#include <sys/stat.h>
#include <turbojpeg.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include "apps/mapview/fragment.hpp"
#include "apps/mapview/keep_memory.hpp"
#include "apps/mapview/map.hpp"

namespace {

using namespace mapview;

constexpr std::uint32_t window_side = 600;

// Of one axis of a tile: for each of the window's pixels that it fills, from which of the pixels it
// was decoded to.
struct nearest_pixels {
  std::vector<std::uint32_t> at{};
  bool are_neighbours = false;  // in a row without gaps

  // The window's from `first` on, `count` of them, show `region` pixels of the map in window_side.
  void find(std::uint32_t first, std::uint32_t count, std::uint32_t region,
            std::uint32_t tile_begin, std::uint32_t tile_length, int decoded) {
    at.resize(count);
    are_neighbours = true;
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint32_t inside =
          std::max((first + i) * region / window_side, tile_begin) - tile_begin;
      at[i] = std::min(inside * static_cast<unsigned>(decoded) / tile_length,
                       static_cast<unsigned>(decoded) - 1);
      are_neighbours = are_neighbours && at[i] == at[0] + i;
    }
  }
};

struct loop {
  map_info map;
  std::string root;
  const tjhandle decoder = tjInitDecompress();
  tjscalingfactor factor{1, 1};
  std::vector<std::uint8_t> file{}, tile{};
  nearest_pixels columns{}, rows{};
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

  // How many bytes of `file` are the file's.
  std::size_t read(const std::string& path) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat about {};
    if (fd < 0 || ::fstat(fd, &about) != 0) throw std::runtime_error(path + ": cannot be read");
    const auto size = static_cast<std::size_t>(about.st_size);
    if (file.size() < size) file.resize(size);
    const ::ssize_t got = ::read(fd, file.data(), size);
    ::close(fd);
    if (got != about.st_size) throw std::runtime_error(path + ": cannot be read");
    return size;
  }

  void draw(const view& v, tile_place place) {
    const rectangle to = pixels_of(map, v, place);
    const rectangle area = map.area_of(place);
    const std::size_t bytes = read(tile_path(root, map, place));
    // The library finds the factor again, from the size that the tile is to have.
    const int w = TJSCALED(static_cast<int>(area.width), factor),
              h = TJSCALED(static_cast<int>(area.height), factor);
    const std::size_t row_bytes = std::size_t{3} * static_cast<unsigned>(w);
    tile.resize(row_bytes * static_cast<unsigned>(h) + 1);  // copy_row() takes four bytes
    if (tjDecompress2(decoder, file.data(), bytes, tile.data(), w, static_cast<int>(row_bytes), h,
                      TJPF_RGB, 0) != 0)
      throw std::runtime_error(tjGetErrorStr2(decoder));
    columns.find(to.x, to.width, v.region.width, area.x, area.width, w);
    rows.find(to.y, to.height, v.region.height, area.y, area.height, h);
    for (std::uint32_t y = 0; y < to.height; ++y)
      copy_row(&tile[row_bytes * rows.at[y]],
               &window[std::size_t{3} * ((to.y + y) * window_side + to.x)]);
  }

  void copy_row(const std::uint8_t* from, std::uint8_t* to) const {
    const std::size_t count = columns.at.size();
    if (count == 0) return;
    if (columns.are_neighbours) {
      std::memcpy(to, from + std::size_t{3} * columns.at[0], 3 * count);
      return;
    }
    // Four bytes are one instruction, three are two. The next pixel overwrites the fourth.
    for (std::size_t x = 0; x + 1 < count; ++x)
      std::memcpy(to + 3 * x, from + std::size_t{3} * columns.at[x], 4);
    std::memcpy(to + 3 * (count - 1), from + std::size_t{3} * columns.at[count - 1], 3);
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
  keep_memory();
  try {
    return run(argv[1], static_cast<std::uint32_t>(std::strtoul(argv[2], nullptr, 10)),
               std::max(1U, static_cast<unsigned>(std::strtoul(argv[3], nullptr, 10))));
  } catch (const std::exception& e) {
    std::fprintf(stderr, "mapview_loop: %s\n", e.what());
    return 1;
  }
}
