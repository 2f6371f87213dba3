// SPDX-License-Identifier: Apache-2.0
#include "messages/lane_table.hpp"

#include <atomic>
#include <functional>
#include <utility>

#include "cluster/words/retry_without_memory.hpp"

namespace strata::messages {

lane_table::lane_table()
    : serial_([] {
        static std::atomic<std::uint64_t> made{0};
        return made.fetch_add(1, std::memory_order_relaxed) + 1;
      }()) {}

lane_table::part& lane_table::part_of(endpoint_id target) noexcept {
  return parts_[std::hash<endpoint_id>()(target) % parts_.size()];
}

// Where there is no memory nothing has changed: all who look at lanes count on there being one in
// each entry.
std::shared_ptr<lane> lane_table::lane_in(part& p, endpoint_id target) {
  const auto known = p.lanes.find(target);
  if (known != p.lanes.end()) return known->second;
  auto made = std::make_shared<lane>(target);
  return p.lanes.try_emplace(target, std::move(made)).first->second;
}

std::shared_ptr<lane> lane_table::to(endpoint_id target) {
  part& p = part_of(target);
  const std::lock_guard lock(p.lock);
  return lane_in(p, target);
}

// Most threads send to one endpoint many times.
const std::shared_ptr<lane>& lane_table::in_use(endpoint_id target) {
  struct used {
    std::uint64_t serial = 0;
    std::shared_ptr<lane> to;
  };
  static thread_local used last;
  // A lane that has been forgotten meanwhile had ended, and says so.
  if (last.serial != serial_ || last.to->target != target) last = {serial_, to(target)};
  return last.to;
}

std::shared_ptr<lane> lane_table::find(endpoint_id target) noexcept {
  part& p = part_of(target);
  const std::lock_guard lock(p.lock);
  const auto known = p.lanes.find(target);
  return known != p.lanes.end() ? known->second : nullptr;
}

match_list<request, 0> lane_table::end(endpoint_id target, outcome how) noexcept {
  part& p = part_of(target);
  const std::lock_guard lock(p.lock);
  const std::shared_ptr<lane> l = cluster::retry_without_memory([&] { return lane_in(p, target); });
  return end_in(p, *l, how);
}

match_list<request, 0> lane_table::end_all_to(net::node_id node, outcome how) noexcept {
  match_list<request, 0> all;
  for (part& p : parts_) {
    const std::lock_guard lock(p.lock);
    for (const auto& [target, l] : p.lanes) {
      if (target.node() != node) continue;
      match_list<request, 0> waited = end_in(p, *l, how);
      all.append_all(waited);
    }
  }
  return all;
}

match_list<request, 0> lane_table::end_in(part& p, lane& l, outcome how) noexcept {
  match_list<request, 0> waited;
  bool is_news = false;
  {
    const std::lock_guard lock(l.lock);
    is_news = l.open == outcome::done;
    l.open = how;
    waited = l.waiting.take_all();
    waited.for_each([](request& r) { r.at = request::place::nowhere; });
  }
  // Once, however often its end is told: so a lane that is forgotten has ended, and whoever still
  // has it hears so.
  if (is_news) cluster::retry_without_memory([&] { p.ended.push_back(l.target); });
  if (p.ended.size() > ended_max) {
    if (const auto oldest = p.lanes.find(p.ended.front()); oldest != p.lanes.end()) {
      {
        const std::lock_guard lock(oldest->second->lock);
        p.eager += oldest->second->eager;
      }
      p.lanes.erase(oldest);  // another one: this one's name is the last
    }
    p.ended.pop_front();
  }
  return waited;
}

std::uint64_t lane_table::eager() {
  std::uint64_t all = 0;
  for (part& p : parts_) {
    const std::lock_guard lock(p.lock);
    all += p.eager;
    for (const auto& [target, l] : p.lanes) {
      const std::lock_guard one(l->lock);
      all += l->eager;
    }
  }
  return all;
}

}  // namespace strata::messages
