// SPDX-License-Identifier: Apache-2.0
#include <exception>
#include <utility>

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
    load_ahead(
        tiles.size(),
        [&](std::uint32_t i) noexcept -> outcome {
          try {
            return {load_fragment(root_, map_, v, tiles.at(i)), nullptr};
          } catch (...) {
            return {{}, std::current_exception()};
          }
        },
        [&](const outcome& o) {
          if (o.problem != nullptr) std::rethrow_exception(o.problem);
          take(o.found);
        });
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
