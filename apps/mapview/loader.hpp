// SPDX-License-Identifier: Apache-2.0
// Where fragments come from: the viewer does not know (the paper's imgLoader, imgTLoader and
// imgDaemon).
#pragma once
#include <functional>
#include <memory>
#include <strata/membership.hpp>
#include <string>
#include <vector>

#include "apps/mapview/fragment.hpp"

namespace mapview {

class loader {
 public:
  virtual ~loader() = default;
  // Calls take(fragment) for each of these tiles, as the view shows it, in any order, one at a
  // time, by the calling thread. Within the runtime. Rethrows what take throws, when what has begun
  // is done.
  virtual void load(const view& v, const tile_grid& tiles,
                    const std::function<void(const fragment&)>& take) = 0;
};

// For a command that reads the map itself.
using loader_maker = std::function<std::unique_ptr<loader>(const map_info&)>;

// A thread for each tile, a few hundred at a time, on this node.
std::unique_ptr<loader> make_threaded_loader(std::string root, const map_info& map);
// Every node loads the tiles of its folders and sends the fragments here. `nodes` is asked for each
// view: folder f is that of the node at place f % nodes().size(). Nodes of the list that have left
// the job are replaced by others, and a tile that its node cannot read is looked for on all members
// of the job before it counts as missing. Throws strata::node_lost_error when the job has lost a
// node, what a node threw as strata::remote_error, std::bad_alloc.
std::unique_ptr<loader> make_cluster_loader(
    std::string root, const map_info& map,
    std::function<std::vector<strata::node_id_t>()> nodes = strata::members);
// The one or the other, by how many nodes the job has when a view is asked for.
std::unique_ptr<loader> make_loader(const std::string& root, const map_info& map);

}  // namespace mapview
