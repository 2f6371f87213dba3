// SPDX-License-Identifier: Apache-2.0
// A breadth-first search within a node: each worker gathers the next vertices that it has found.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "rmat.hpp"
#include "strata/parallel.hpp"
#include "strata/per_worker.hpp"

namespace programs {

inline depths search_by_workers(const graph& g, vertex root) {
  std::vector<std::atomic<std::uint32_t>> depth(g.first.size() - 1);
  for (auto& d : depth) d.store(unreached, std::memory_order_relaxed);
  depth[root] = 0;
  std::vector<vertex> frontier{root};
  strata::per_worker<std::vector<vertex>> found;
  for (std::uint32_t next = 1; !frontier.empty(); ++next) {
    const auto reach = [&](std::span<const vertex> neighbours) {
      found.use([&](std::vector<vertex>& mine) {
        for (const vertex w : neighbours) {
          std::uint32_t before = unreached;
          if (depth[w].load(std::memory_order_relaxed) == unreached &&
              depth[w].compare_exchange_strong(before, next, std::memory_order_relaxed))
            mine.push_back(w);
        }
      });
    };
    strata::parallel_for(std::size_t{0}, frontier.size(), [&](std::size_t i) {
      const std::span<const vertex> all = g.of(frontier[i]);
      constexpr std::size_t block = 4096;  // of the edges of a large vertex
      if (all.size() <= block) return reach(all);
      strata::parallel_for(std::size_t{0}, (all.size() + block - 1) / block, [&](std::size_t b) {
        reach(all.subspan(b * block, std::min(block, all.size() - b * block)));
      });
    });
    frontier.clear();
    found.for_each([&](std::vector<vertex>& part) {
      frontier.insert(frontier.end(), part.begin(), part.end());
      part.clear();
    });
  }
  return depths(depth.begin(), depth.end());
}

}  // namespace programs
