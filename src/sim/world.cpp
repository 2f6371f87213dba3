// SPDX-License-Identifier: Apache-2.0
#include "sim/world.hpp"

#include <algorithm>
#include <utility>

namespace strata::sim {

void world::at(std::int64_t time_ns, std::function<void()> what) {
  std::size_t place = whats_.size();
  if (free_whats_.empty()) {
    whats_.push_back(std::move(what));
  } else {
    place = free_whats_.back();
    free_whats_.pop_back();
    whats_[place] = std::move(what);
  }
  plan_.push({std::max(time_ns, now_), order_++, place});
}

void world::carry(node_id from, node_id to, std::size_t bytes, std::int64_t departs_ns,
                  std::function<void()> arrive) {
  ++packets_;
  if (cuts_.contains(std::minmax(from, to))) return;
  const auto own = own_.find(std::minmax(from, to));
  const bool is_own = own != own_.end();
  if (link_free_at_.size() <= from) link_free_at_.resize(from + std::size_t{1});
  const std::int64_t latency_ns = is_own ? own->second.latency_ns : network_.latency_ns;
  const double bytes_per_ns = is_own ? own->second.bytes_per_ns : network_.bytes_per_ns;
  // The sender's link carries one packet after the other.
  std::int64_t& free_at = is_own ? own_free_at_[{from, to}] : link_free_at_[from];
  free_at = std::max(departs_ns, free_at) +
            static_cast<std::int64_t>(static_cast<double>(bytes) / bytes_per_ns);
  const int copies =
      (random.unit() < network_.loss ? 0 : 1) + (random.unit() < network_.duplication ? 1 : 0);
  for (int i = 0; i < copies; ++i) {
    const auto jitter =
        static_cast<std::int64_t>(random.unit() * static_cast<double>(network_.jitter_ns));
    at(free_at + latency_ns + jitter, i + 1 < copies ? arrive : std::move(arrive));
  }
}

bool world::run(const std::function<bool()>& until, std::int64_t limit_ns) {
  while (!until()) {
    if (plan_.empty() || plan_.top().time > limit_ns) return false;
    const planned first = plan_.top();
    plan_.pop();
    now_ = first.time;
    // Moved out first: what happens may plan more.
    const std::function<void()> what = std::exchange(whats_[first.what], nullptr);
    free_whats_.push_back(first.what);
    ++happenings_;
    what();
  }
  return true;
}

}  // namespace strata::sim
