// SPDX-License-Identifier: Apache-2.0
#include "messages/named_objects.hpp"

#include <exception>

#include "strata/detail/check.hpp"
#include "strata/detail/parking.hpp"
#include "strata/detail/worker.hpp"

namespace strata::messages {

void named_objects::enter(std::uint64_t number, void* object, const void* mark) {
  const strata::detail::uninterrupted guard;
  shard& s = shard_of(number);
  const std::lock_guard lock(s.lock);
  const bool is_new = s.entries.try_emplace(number, entry{.object = object, .mark = mark}).second;
  STRATA_CHECK(is_new, number);
}

template <class Fits>
void* named_objects::hold_if(std::uint64_t number, Fits fits) noexcept {
  const strata::detail::uninterrupted guard;
  shard& s = shard_of(number);
  const std::lock_guard lock(s.lock);
  const auto found = s.entries.find(number);
  if (found == s.entries.end() || found->second.is_ending || !fits(found->second)) return nullptr;
  ++found->second.holders;
  return found->second.object;
}

void* named_objects::hold(std::uint64_t number) noexcept {
  return hold_if(number, [](const entry&) { return true; });
}

void* named_objects::hold(std::uint64_t number, const void* mark) noexcept {
  return hold_if(number, [mark](const entry& e) { return e.mark == mark; });
}

void named_objects::let_go(std::uint64_t number) noexcept {
  const strata::detail::uninterrupted guard;
  shard& s = shard_of(number);
  const std::lock_guard lock(s.lock);
  entry& e = s.entries.find(number)->second;
  // With the lock: who waits may end the entry as soon as it has it. Partner: wait_for_holders().
  if (--e.holders == 0 && e.is_ending) strata::detail::unpark(&e, UINT32_MAX);
}

// False, and the lock is held as before: it cannot wait.
bool named_objects::wait_for_holders(entry& e,
                                     std::unique_lock<strata::detail::spin_lock>& lock) noexcept {
  strata::detail::spin_lock* const held = lock.release();
  try {
    (void)strata::detail::park(
        {.what = "the last call on a named object",
         .address = &e,
         .then = [](void* l) { static_cast<strata::detail::spin_lock*>(l)->unlock(); },
         .then_argument = held,
         .is_not_left = true});
  } catch (const std::exception&) {
    lock = std::unique_lock(*held, std::adopt_lock);
    return false;
  }
  lock = std::unique_lock(*held);
  return true;
}

bool named_objects::end(std::uint64_t number) noexcept {
  const strata::detail::uninterrupted guard;
  shard& s = shard_of(number);
  std::unique_lock lock(s.lock);
  const auto found = s.entries.find(number);
  STRATA_CHECK(found != s.entries.end(), number);
  entry& e = found->second;  // stays where it is, whatever comes and goes beside it
  e.is_ending = true;
  while (e.holders != 0) {
    if (is_lost_.load(std::memory_order_relaxed) || !wait_for_holders(e, lock)) return false;
  }
  s.entries.erase(number);
  return true;
}

void named_objects::on_lost() noexcept {
  is_lost_.store(true, std::memory_order_relaxed);
  // Who ends an object has seen it under the lock, or is found here.
  for (shard& s : shards_) {
    const std::lock_guard lock(s.lock);
    for (auto& [number, e] : s.entries) {
      if (e.is_ending) strata::detail::unpark(&e, UINT32_MAX);
    }
  }
}

}  // namespace strata::messages
