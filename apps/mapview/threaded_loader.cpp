// SPDX-License-Identifier: Apache-2.0
#include <exception>
#include <vector>

#include "apps/mapview/loader.hpp"
#include "apps/mapview/tile_threads.hpp"

namespace mapview {
namespace {

class threaded_loader final : public loader {
 public:
  threaded_loader(std::string root, const map_info& map) : root_(std::move(root)), map_(map) {}

  void load(const view& v, const tile_grid& tiles,
            const std::function<void(const fragment&)>& take) override {
    struct outcome {
      fragment found;
      std::exception_ptr problem;  // out of memory
    };
    std::vector<outcome> loaded(tiles.size());
    tile_threads threads(tiles.size());
    for (std::uint32_t i = 0; i < tiles.size(); ++i) {
      threads.begin([this, &v, &tiles, &loaded, i]() noexcept {
        try {
          loaded[i].found = load_fragment(root_, map_, v, tiles.at(i));
        } catch (...) {
          loaded[i].problem = std::current_exception();
        }
      });
    }
    for (std::size_t i = 0; i < tiles.size(); ++i) {
      threads.join(i);
      if (loaded[i].problem != nullptr) std::rethrow_exception(loaded[i].problem);
      take(loaded[i].found);
      loaded[i] = {};
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
