// SPDX-License-Identifier: Apache-2.0
// The nodes keep their own folders: they decode and scale what lies there, and only the fragments
// travel, as messages. A node that has done its own takes part in what others have left: tiles
// whose files it can read, too, are loaded there.
//
// The folders are dealt out to the nodes that there are when a view is asked for, a part to each;
// all nodes hear the same list. A node that has left before it could do its part is replaced by
// another, and what is not found where it should lie is looked for on all other nodes.
#include <algorithm>
#include <array>
#include <cstdint>
#include <exception>
#include <functional>
#include <iterator>
#include <memory>
#include <strata/call.hpp>
#include <strata/error.hpp>
#include <strata/membership.hpp>
#include <strata/remote_thread.hpp>
#include <string>
#include <utility>
#include <vector>

#include "apps/mapview/arrivals.hpp"
#include "apps/mapview/cluster_serving.hpp"
#include "apps/mapview/loader.hpp"

namespace mapview {
namespace {

// The calls of serve_part(). When the viewer gives up, it closes its endpoint first, so that they
// end.
struct parts_in_progress {
  explicit parts_in_progress(std::size_t parts) : calls(parts) {}
  ~parts_in_progress() {
    for (strata::remote_thread& t : calls) {
      try {
        if (t.joinable()) t.join();
      } catch (const std::exception&) {  // what made the viewer give up says more
      }
    }
  }
  parts_in_progress(const parts_in_progress&) = delete;
  parts_in_progress& operator=(const parts_in_progress&) = delete;
  std::vector<strata::remote_thread> calls;
};

// Suspends until all parts have been served. Part k is `nodes[k]`'s; where that has left before it
// could do anything, another node's, which is noted there. (Who has begun stays until it is done.)
void serve_all(order o, std::vector<strata::node_id_t>& nodes) {
  parts_in_progress parts(nodes.size());
  const auto begin = [&](std::size_t k) {
    o.part = static_cast<std::uint32_t>(k);
    parts.calls[k] = strata::remote_thread(strata::on_node{nodes[k]}, strata::call<serve_part>(o));
  };
  const auto do_or_replace = [&](std::size_t k, const auto& step) {
    try {
      step();
      return true;
    } catch (const strata::node_left_error&) {
    }
    const std::vector<strata::node_id_t> there = strata::members();
    nodes[k] = there[k % there.size()];
    return false;
  };
  for (std::size_t k = 0; k < nodes.size(); ++k) {
    while (!do_or_replace(k, [&] { begin(k); })) {
    }
  }
  for (std::size_t k = 0; k < nodes.size(); ++k) {
    while (!do_or_replace(k, [&] {
      if (!parts.calls[k].joinable()) begin(k);
      parts.calls[k].join();
    })) {
    }
  }
}

class cluster_loader final : public loader {
 public:
  cluster_loader(const std::string& root, const map_info& map,
                 std::function<std::vector<strata::node_id_t>()> nodes)
      : map_(map), nodes_(std::move(nodes)) {
    if (root.size() >= root_.size())
      throw strata::user_error("the map's path is longer than 1023 bytes");
    std::copy(root.begin(), root.end(), root_.begin());
  }

  void load(const view& v, const tile_grid& tiles,
            const std::function<void(const fragment&)>& take) override {
    std::vector<strata::node_id_t> nodes = nodes_();
    if (nodes.empty()) throw strata::misuse_error("a cluster loader needs one node at least");
    arrivals come(tiles);
    const order o{come.id(), {},   map_, v, tiles, static_cast<std::uint32_t>(nodes.size()),
                  0,         root_};
    std::vector<fragment> unfound;
    come.gather(
        [&] {
          serve_all(o, nodes);
          return come.tiles();
        },
        [&](fragment f) {
          if (f.missing) {
            unfound.push_back(std::move(f));
          } else {
            take(f);
          }
        });
    for (const strata::node_id_t n : strata::members()) {
      if (unfound.empty()) return;
      seek_on(n, o, nodes, come, unfound, take);
    }
    for (const fragment& f : unfound) take(f);
  }

 private:
  // What is left of `unfound` is not there either. nodes: by part, who has not found its tiles.
  static void seek_on(strata::node_id_t n, const order& o,
                      const std::vector<strata::node_id_t>& nodes, arrivals& come,
                      std::vector<fragment>& unfound,
                      const std::function<void(const fragment&)>& take) {
    const auto wanted_end = std::partition(unfound.begin(), unfound.end(), [&](const fragment& f) {
      return nodes[o.part_of(f.tile)] != n;
    });
    std::vector<fragment> left(std::make_move_iterator(wanted_end),
                               std::make_move_iterator(unfound.end()));
    for (auto at = unfound.begin(); at != wanted_end;) {
      some_tiles some;
      const auto first = at;
      for (; at != wanted_end && some.count < some_tiles::most; ++at) {
        come.await_again(at->tile);
        some.numbers[some.count++] = o.tiles.number_of(at->tile);
      }
      tiles_found all;
      come.gather(
          [&] {
            try {
              all = strata::call<seek>(strata::on_node{n}, o, some);
            } catch (const strata::node_left_error&) {  // it has found nothing
            }
            return all.count();
          },
          take);
      for (std::uint32_t i = 0; i < some.count; ++i) {
        if (!all.here[i]) left.push_back(std::move(first[i]));
      }
    }
    unfound = std::move(left);
  }

  const map_info map_;
  const std::function<std::vector<strata::node_id_t>()> nodes_;
  std::array<char, 1024> root_{};
};

// By what the job is when a view is asked for.
class adapting_loader final : public loader {
 public:
  adapting_loader(const std::string& root, const map_info& map)
      : alone_(make_threaded_loader(root, map)), together_(make_cluster_loader(root, map)) {}
  void load(const view& v, const tile_grid& tiles,
            const std::function<void(const fragment&)>& take) override {
    (strata::members().size() == 1 ? *alone_ : *together_).load(v, tiles, take);
  }

 private:
  const std::unique_ptr<loader> alone_, together_;
};

}  // namespace

std::unique_ptr<loader> make_cluster_loader(std::string root, const map_info& map,
                                            std::function<std::vector<strata::node_id_t>()> nodes) {
  return std::make_unique<cluster_loader>(root, map, std::move(nodes));
}

std::unique_ptr<loader> make_loader(const std::string& root, const map_info& map) {
  return std::make_unique<adapting_loader>(root, map);
}

}  // namespace mapview
