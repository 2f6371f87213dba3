// SPDX-License-Identifier: Apache-2.0
#include "cluster/work/victims.hpp"

namespace strata::cluster {

node_id victims::next() {
  const node_id self = members_.self();
  if (by_loads_) {
    const auto most = std::max_element(loads_.begin(), loads_.end());
    if (*most != 0) {
      *most = 0;  // until it is heard of again
      const auto node = static_cast<node_id>(most - loads_.begin());
      if (members_.works(node)) return node;
    }
  }
  // The same host first.
  if (near_left_ != 0) {
    --near_left_;
    const node_id near = members_.near(static_cast<unsigned>(random_.below(members_.nears())));
    if (members_.works(near)) return near;
  }
  const unsigned n = members_.begun();
  if (n < 2) return self;
  const auto other = static_cast<unsigned>(random_.below(n - 1));
  unsigned victim = other >= self ? other + 1 : other;
  // Of numbers that nobody has any more the next that somebody has.
  for (unsigned i = 0; i < n && (victim == self || !members_.works(static_cast<node_id>(victim)));
       ++i)
    victim = (victim + 1) % n;
  return members_.works(static_cast<node_id>(victim)) ? static_cast<node_id>(victim) : self;
}

}  // namespace strata::cluster
