// SPDX-License-Identifier: Apache-2.0
#include "sched/stack_pools.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include "context/overflow.hpp"
#include "sched/place.hpp"
#include "sched/place_futex.hpp"

namespace strata::detail {

// As much address space as so many pools of the usual size have at most, which is 1 TiB.
static constexpr std::size_t further_max = 15;

stack_pools::~stack_pools() {
  for (const auto& [bytes, pool] : by_bytes_) forget_overflow(*pool);
  for (const auto& pool : further_) forget_overflow(*pool);
}

stack_pool& stack_pools::begin(stack_pool& made) {
  others_.fetch_add(1, std::memory_order_relaxed);
  watch_for_overflow(made);
  return made;
}

stack_pool& stack_pools::of(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (const auto there = by_bytes_.find(bytes); there != by_bytes_.end()) return *there->second;
  auto made = std::make_unique<stack_pool>(bytes, &stack_main, true, stack_pool::whose::thread);
  return begin(*by_bytes_.emplace(bytes, std::move(made)).first->second);
}

stack* stack_pools::further() noexcept {
  try {
    const std::lock_guard lock(mutex_);
    if (further_.size() == further_max) return nullptr;
    further_.push_back(std::make_unique<stack_pool>(usual_.stack_bytes(), &stack_main));
    return begin(*further_.back()).take_kept();
  } catch (const std::exception&) {
    return nullptr;  // no address space, or no memory
  }
}

stack* stack_pools::take_returned() noexcept {
  const std::lock_guard lock(mutex_);
  for (const auto& pool : further_) {
    if (pool->left() == 0) continue;
    if (stack* const s = pool->take_kept()) return s;
  }
  return nullptr;
}

bool stack_pools::holds(const void* address) {
  if (usual_.holds(address)) return true;
  if (!has_others()) return false;
  const std::lock_guard lock(mutex_);
  return std::any_of(by_bytes_.begin(), by_bytes_.end(),
                     [&](const auto& p) { return p.second->holds(address); }) ||
         std::any_of(further_.begin(), further_.end(),
                     [&](const auto& p) { return p->holds(address); });
}

std::int64_t stack_pools::tidy(std::int64_t now_ns) noexcept {
  std::int64_t next_ns = usual_.tidy(now_ns);
  if (!has_others()) return next_ns;
  const auto tidy_one = [&](stack_pool& pool) { next_ns = sooner(next_ns, pool.tidy(now_ns)); };
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return sooner(next_ns, usual_.unused_ns());
  for (const auto& [bytes, pool] : by_bytes_) tidy_one(*pool);
  for (const auto& pool : further_) tidy_one(*pool);
  return next_ns;
}

bool stack_pools::is_tidy() const noexcept {
  if (!usual_.is_tidy()) return false;
  if (!has_others()) return true;
  // Whoever has it may be about to give back, or to take.
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return false;
  return std::all_of(by_bytes_.begin(), by_bytes_.end(),
                     [](const auto& p) { return p.second->is_tidy(); }) &&
         std::all_of(further_.begin(), further_.end(), [](const auto& p) { return p->is_tidy(); });
}

std::vector<stack_pool*> stack_pools::all() {
  std::vector<stack_pool*> pools{&usual_};
  const std::lock_guard lock(mutex_);
  for (const auto& [bytes, pool] : by_bytes_) pools.push_back(pool.get());
  for (const auto& pool : further_) pools.push_back(pool.get());
  return pools;
}

std::vector<const stack_pool*> stack_pools::all_further() const {
  std::vector<const stack_pool*> pools;
  if (!has_others()) return pools;
  const std::lock_guard lock(mutex_);
  for (const auto& pool : further_) pools.push_back(pool.get());
  return pools;
}

}  // namespace strata::detail
