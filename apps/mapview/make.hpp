// SPDX-License-Identifier: Apache-2.0
// Cuts a picture, or a terrain, into a map.
#pragma once
#include <string>

#include "apps/mapview/map.hpp"
#include "apps/mapview/picture.hpp"

namespace mapview {

// Writes all tiles, each by a task, and at the end map.json: without it there is no map. `from`:
// null for a terrain. Within the runtime. Throws strata::user_error.
void make_map(const std::string& root, const map_info& map, const picture* from, int quality);

}  // namespace mapview
