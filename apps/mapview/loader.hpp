// SPDX-License-Identifier: Apache-2.0
// Where fragments come from: the viewer does not know (the paper's imgLoader, imgTLoader and
// imgDaemon).
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "apps/mapview/fragment.hpp"

namespace mapview {

class loader {
 public:
  virtual ~loader() = default;
  // Calls take(fragment) for each tile of the view, in any order, one at a time, by the calling
  // thread. Within the runtime.
  virtual void load(const view& v, const std::function<void(const fragment&)>& take) = 0;
};

// A thread for each tile, on this node.
std::unique_ptr<loader> make_threaded_loader(std::string root, const map_info& map);
// Every node loads the tiles of its folders and sends the fragments here.
std::unique_ptr<loader> make_cluster_loader(std::string root, const map_info& map);

}  // namespace mapview
