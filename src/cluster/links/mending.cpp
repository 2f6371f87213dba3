// SPDX-License-Identifier: Apache-2.0
#include "cluster/links/mending.hpp"

#include <algorithm>

namespace strata::cluster {

void mending::lost(node_id n, network over, std::int64_t now_ns) {
  seam& s = seams_[{n, over}];
  if (s.is_open) return;
  const bool has_stood = s.pause_ns == 0 || now_ns - s.made_ns > settings_.pause_max_ns;
  if (has_stood) s.pause_ns = settings_.pause_ns;
  s.is_open = true;
  s.is_tried = false;
  s.next_ns = now_ns + s.pause_ns;
}

void mending::made(node_id n, network over, std::int64_t now_ns) {
  seam& s = seams_[{n, over}];
  s.is_open = s.is_tried = false;
  s.made_ns = now_ns;
  silent_looks_.erase(n);
}

void mending::failed(node_id n, network over, std::int64_t now_ns) {
  const auto found = seams_.find({n, over});
  if (found == seams_.end()) return;
  found->second.is_tried = false;
  found->second.next_ns = now_ns + found->second.pause_ns;
}

void mending::forget(node_id n) {
  std::erase_if(seams_, [n](const auto& s) { return s.first.first == n; });
  silent_looks_.erase(n);
}

void mending::look_after_spares() {
  for (const node_id n : hands_.spares()) {
    if (++silent_looks_[n] <= silent_looks_max) {
      hands_.speak_by_spare(n);
    } else {
      silent_looks_.erase(n);
      hands_.give_up_spare(n);
    }
  }
}

std::int64_t mending::on_time(std::int64_t now_ns) {
  if (now_ns >= look_at_) {
    look_at_ = now_ns + settings_.look_ns;
    look_after_spares();
  }
  // Of two networks to the same node one at a time: so both ends agree which was the last.
  const auto is_tried = [this](node_id n) {
    return std::any_of(seams_.begin(), seams_.end(), [n](const auto& s) {
      return s.first.first == n && s.second.is_open && s.second.is_tried;
    });
  };
  std::int64_t next_ns = look_at_;
  for (auto& [where, s] : seams_) {
    const auto& [n, over] = where;
    // Of two nodes one tries.
    if (!s.is_open || n > self_ || is_tried(n)) continue;
    if (now_ns >= s.next_ns) {
      s.is_tried = hands_.connect_again(n, over);
      if (s.is_tried) s.pause_ns = std::min(2 * s.pause_ns, settings_.pause_max_ns);
      s.next_ns = now_ns + s.pause_ns;
    }
    if (!s.is_tried) next_ns = std::min(next_ns, s.next_ns);
  }
  return next_ns;
}

}  // namespace strata::cluster
