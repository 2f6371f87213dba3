// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <strata/thread.hpp>
#include <vector>

#include "apps/mapview/loader.hpp"

namespace mapview {
namespace {

class threaded_loader final : public loader {
 public:
  threaded_loader(std::string root, const map_info& map) : root_(std::move(root)), map_(map) {}

  void load(const view& v, const std::function<void(const fragment&)>& take) override {
    const std::vector<tile_place> tiles = tiles_of(map_, v.region);
    std::vector<std::optional<fragment>> loaded(tiles.size());
    std::vector<strata::thread> threads;
    threads.reserve(tiles.size());
    for (std::size_t i = 0; i < tiles.size(); ++i)
      threads.emplace_back(
          [this, &v, &tiles, &loaded, i] { loaded[i] = load_fragment(root_, map_, v, tiles[i]); });
    for (std::size_t i = 0; i < tiles.size(); ++i) {
      threads[i].join();
      take(*loaded[i]);
      loaded[i].reset();
    }
  }

 private:
  std::string root_;
  map_info map_;
};

}  // namespace

std::unique_ptr<loader> make_threaded_loader(std::string root, const map_info& map) {
  return std::make_unique<threaded_loader>(std::move(root), map);
}

}  // namespace mapview
