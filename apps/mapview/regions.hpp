// SPDX-License-Identifier: Apache-2.0
// `mapview regions`: times the seven regions of the pCoR paper.
#pragma once
#include <functional>
#include <string>

#include "apps/common/program.hpp"
#include "apps/mapview/loader.hpp"

namespace mapview {

struct regions_wanted {
  std::string root;
  std::string csv, svg;  // files; empty: none
  unsigned repeat = 1;   // shows each so often, and takes the median
};
// Returns the exit code. Throws what can be put right, before it shows anything.
int time_regions(apps::program& p, const regions_wanted& r, const std::function<map_info()>& map,
                 const loader_maker& loader_for);

}  // namespace mapview
