// SPDX-License-Identifier: Apache-2.0
#include "sched/frame_depot.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "os/futex.hpp"

namespace strata::detail {

// In a free block: who gives blocks back must not need memory for it. Blocks are linked up to the
// last one.
struct frame_chunk::run : frame_depot::node {
  run* next_run;
  node* last;
  std::uint32_t count;
};
static_assert(sizeof(frame_chunk::run) <= frame_pool::granule_bytes);

// Fewer are not worth a visit.
static constexpr std::uint32_t taken_min = 32;

frame_depot::run* frame_depot::split(chain blocks) noexcept {
  run* runs = nullptr;
  const frame_chunk* of_last = nullptr;
  for (node* n = blocks.first; blocks.count != 0; --blocks.count) {
    node* const next = n->next;
    const frame_chunk* const k = &frame_chunks::of(n);
    if (k == of_last) {
      runs->last->next = n;
      runs->last = n;
      ++runs->count;
    } else {
      frame_pool::unpoison(n, sizeof(run));
      runs = ::new (static_cast<void*>(n)) run{{nullptr}, runs, n, 1};
      of_last = k;
    }
    n = next;
  }
  return runs;
}

void frame_depot::give(std::size_t c, chain blocks) noexcept {
  run* runs = split(blocks);
  const std::lock_guard lock(mutex_);
  while (runs != nullptr) {
    run& r = *std::exchange(runs, runs->next_run);
    frame_chunk& k = frame_chunks::of(&r);
    const bool was_listed = has_some(k);
    r.next_run = std::exchange(k.runs, &r);
    k.free += r.count;
    const bool is_whole = k.free == k.cut;
    if (was_listed && is_whole) with_some_[c].remove(k);
    if (!was_listed && !is_whole) with_some_[c].push(k);
    if (is_whole) chunks_.give(k);
  }
}

frame_depot::chain frame_depot::take_runs(frame_chunk& k) noexcept {
  chain all;
  while (k.runs != nullptr && all.count < taken_min) {
    run& r = *std::exchange(k.runs, k.runs->next_run);
    r.last->next = all.first;
    all.first = &r;
    all.count += r.count;
  }
  k.free -= all.count;
  return all;
}

frame_depot::chain frame_depot::cut(frame_chunk& k, std::size_t c) noexcept {
  // Few at a time for a start: a program that needs ten frames should touch ten.
  const std::uint32_t n = std::min(k.uncut, std::clamp(k.cut, taken_min, frame_pool::batch));
  std::byte* at = frame_chunks::room_of(k).first + k.cut * bytes_of(c);
  chain blocks{nullptr, n};
  for (std::uint32_t i = 0; i < n; ++i, at += bytes_of(c)) {
    frame_pool::unpoison(at, sizeof(node));
    blocks.first = ::new (static_cast<void*>(at)) node{blocks.first};
    frame_pool::poison(at, c);
  }
  k.cut += n;
  k.uncut -= n;
  return blocks;
}

frame_depot::chain frame_depot::take(std::size_t c) {
  const std::lock_guard lock(mutex_);
  if (with_some_[c].front() == nullptr) {
    frame_chunk& fresh = chunks_.take();
    fresh.uncut = static_cast<std::uint32_t>(frame_chunks::room_of(fresh).bytes / bytes_of(c));
    with_some_[c].push(fresh);
  }
  frame_chunk& k = *with_some_[c].front();
  const chain blocks = k.runs != nullptr ? take_runs(k) : cut(k, c);
  if (!has_some(k)) with_some_[c].remove(k);
  return blocks;
}

std::int64_t frame_depot::tidy(std::int64_t now_ns) noexcept {
  if (is_tidy()) return os::futex_forever_ns;
  const std::int64_t unused_ns = unused_ns_.load(std::memory_order_relaxed);
  const std::unique_lock lock(mutex_, std::try_to_lock);
  return lock.owns_lock() ? chunks_.tidy(now_ns, unused_ns) : unused_ns;
}

}  // namespace strata::detail
