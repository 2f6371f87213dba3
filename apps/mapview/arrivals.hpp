// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <strata/error.hpp>
#include <strata/message.hpp>
#include <utility>
#include <vector>

#include "apps/mapview/cluster_words.hpp"

namespace mapview {

// Where the fragments of some tiles arrive. After an exception it is of no use.
class arrivals {
 public:
  explicit arrivals(const tile_grid& tiles)
      : grid_(tiles), seen_(grid_.size()), mine_(std::in_place) {}

  [[nodiscard]] strata::endpoint_id id() const { return mine_->id(); }
  [[nodiscard]] std::uint32_t tiles() const { return grid_.size(); }
  // Another fragment of that tile may come.
  void await_again(tile_place tile) { seen_[index_of(tile)] = false; }

  // Makes ask() in a thread of its own, which has the nodes send and returns how many tiles come
  // with that. Meanwhile, and until they are there, calls use(fragment) for each tile, once.
  // Rethrows what any of them throws, when ask() has ended.
  void gather(const std::function<std::uint32_t()>& ask, const std::function<void(fragment)>& use);

 private:
  [[nodiscard]] std::size_t index_of(tile_place tile) const {
    if (!grid_.contains(tile)) throw strata::error("a fragment of another view");
    return grid_.number_of(tile);
  }

  const tile_grid grid_;
  std::vector<bool> seen_;
  std::optional<strata::endpoint> mine_;
};

}  // namespace mapview
