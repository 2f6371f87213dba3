// SPDX-License-Identifier: Apache-2.0
// Undirected RMAT graphs (D. Chakrabarti, Y. Zhan, C. Faloutsos, 2004,
// doi:10.1137/1.9781611972740.43), a few of whose vertices have a large part of all edges; and a
// serial breadth-first search, which says what others have to find.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "programs.hpp"

namespace programs {

using vertex = std::uint32_t;
constexpr std::uint32_t unreached = UINT32_MAX;

// The neighbours of vertex v are to[first[v]] to to[first[v + 1] - 1].
struct graph {
  std::vector<std::size_t> first;
  std::vector<vertex> to;
  [[nodiscard]] std::span<const vertex> of(std::size_t v) const {
    return std::span(to).subspan(first[v], first[v + 1] - first[v]);
  }
};

// Of 2^scale vertices and 8 edges for each of them, the part of who has every size-th vertex, from
// `rank` on: vertex v is its number v / size.
inline graph make_graph(unsigned scale, unsigned rank, unsigned size) {
  const vertex vertices = vertex{1} << scale;
  std::vector<std::vector<vertex>> of(vertices / size + 1);
  for (std::uint64_t i = 0; i < 8 * std::uint64_t{vertices}; ++i) {
    vertex ends[2] = {0, 0};
    for (unsigned level = 0; level < scale; ++level) {
      const std::uint64_t draw = mixed(i * 64 + level) % 100;  // .57, .19, .19, .05
      ends[0] = ends[0] * 2 + (draw >= 76 ? 1 : 0);
      ends[1] = ends[1] * 2 + (draw >= 95 || (draw >= 57 && draw < 76) ? 1 : 0);
    }
    for (const unsigned one : {0U, 1U})
      if (ends[one] % size == rank) of[ends[one] / size].push_back(ends[1 - one]);
  }
  graph g{{0}, {}};
  for (const auto& neighbours : of) {
    g.to.insert(g.to.end(), neighbours.begin(), neighbours.end());
    g.first.push_back(g.to.size());
  }
  return g;
}

using depths = std::vector<std::uint32_t>;

inline depths search_serially(const graph& g, vertex root) {
  depths depth(g.first.size() - 1, unreached);
  std::vector<vertex> queue{root};
  depth[root] = 0;
  for (std::size_t i = 0; i < queue.size(); ++i) {
    for (const vertex w : g.of(queue[i])) {
      if (depth[w] != unreached) continue;
      depth[w] = depth[queue[i]] + 1;
      queue.push_back(w);
    }
  }
  return depth;
}

}  // namespace programs
