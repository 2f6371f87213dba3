// SPDX-License-Identifier: Apache-2.0
// What a node does for a view: loads what lies in its folders, and what others have left.
#pragma once
#include "apps/mapview/cluster_words.hpp"

namespace mapview {

// On the node that answers for the part: sends each of its tiles, and ends when that is done.
void serve_part(order o);

// On any node: sends those that it can read.
[[nodiscard]] tiles_found seek(const order& o, const some_tiles& some);

}  // namespace mapview
