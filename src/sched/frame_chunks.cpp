// SPDX-License-Identifier: Apache-2.0
#include "sched/frame_chunks.hpp"

#include <algorithm>
#include <memory>
#include <new>

#include "os/futex.hpp"
#include "os/pages.hpp"

#if defined(STRATA_ASAN)
#include <sanitizer/lsan_interface.h>
#endif

namespace strata::detail {

namespace {

// What only a frame knows is no leak.
void tell_sanitizer_of([[maybe_unused]] const std::byte* region,
                       [[maybe_unused]] std::size_t bytes) noexcept {
#if defined(STRATA_ASAN)
  __lsan_register_root_region(region, bytes);
#endif
}
// Others may get these addresses, of which free blocks were poisoned.
void let_sanitizer_forget([[maybe_unused]] const std::byte* region,
                          [[maybe_unused]] std::size_t bytes) noexcept {
#if defined(STRATA_ASAN)
  __lsan_unregister_root_region(region, bytes);
  __asan_unpoison_memory_region(region, bytes);
#endif
}

std::uintptr_t number_of(const void* p) noexcept { return reinterpret_cast<std::uintptr_t>(p); }

}  // namespace

frame_chunks::~frame_chunks() {
  while (region* const r = regions_) {
    regions_ = r->next;
    std::byte* const memory = r->memory;
    let_sanitizer_forget(reinterpret_cast<std::byte*>(r), region_bytes);
    std::destroy_at(r);
    os::give_pages(memory, memory_bytes);
  }
}

frame_chunks::region& frame_chunks::region_of(const void* p) noexcept {
  return *reinterpret_cast<region*>(number_of(p) / region_bytes * region_bytes);
}

frame_chunk& frame_chunks::of(const void* block) noexcept {
  return region_of(block).chunks[number_of(block) % region_bytes / chunk_bytes];
}

frame_chunks::room frame_chunks::room_of(const frame_chunk& k) noexcept {
  region& r = region_of(&k);
  const auto i = static_cast<std::size_t>(&k - r.chunks.data());
  const std::size_t head = i == 0 ? os::round_up_to_pages(sizeof(region)) : 0;
  return {reinterpret_cast<std::byte*>(&r) + i * chunk_bytes + head, chunk_bytes - head};
}

void frame_chunks::begin_region() {
  std::byte* const memory = os::take_pages(memory_bytes);
  if (memory == nullptr) throw std::bad_alloc();
  auto* const at = memory + (region_bytes - number_of(memory) % region_bytes) % region_bytes;
  // Who needs ten frames shall not get 2 MiB.
  os::use_small_pages(at, region_bytes);
  tell_sanitizer_of(at, region_bytes);
  regions_ = ::new (static_cast<void*>(at)) region{regions_, memory, {}};
  for (std::size_t i = region_chunks; i-- != 0;) cold_list_.push(regions_->chunks[i]);
}

void frame_chunks::prepare() {
  if (cold_list_.front() == nullptr) begin_region();
}

frame_chunk& frame_chunks::take() {
  if (frame_chunk* const k = warm_list_.front()) {
    warm_list_.remove(*k);
    warm_.store(warm() - 1, std::memory_order_relaxed);
    untouched_ = std::min(untouched_, warm());
    return *k;
  }
  prepare();
  frame_chunk& k = *cold_list_.front();
  cold_list_.remove(k);
  with_memory_.store(with_memory() + 1, std::memory_order_relaxed);
  return k;
}

void frame_chunks::give(frame_chunk& k) noexcept {
  k = {};
  warm_list_.push(k);
  warm_.store(warm() + 1, std::memory_order_relaxed);
}

std::int64_t frame_chunks::tidy(std::int64_t now_ns, std::int64_t unused_ns) noexcept {
  if (is_tidy()) return os::futex_forever_ns;
  if (now_ns - period_began_ns_ >= unused_ns) {
    to_cool_ = untouched_;
    untouched_ = warm();
    period_began_ns_ = now_ns;
  }
  constexpr std::size_t at_a_time = 64;
  for (std::size_t n = at_a_time; n != 0 && std::min(to_cool_, untouched_) != 0; --n) {
    frame_chunk& k = *warm_list_.front();
    warm_list_.remove(k);
    const room m = room_of(k);
    os::forget_pages(m.first, m.bytes);
    cold_list_.push(k);
    --to_cool_;
    --untouched_;
    warm_.store(warm() - 1, std::memory_order_relaxed);
    with_memory_.store(with_memory() - 1, std::memory_order_relaxed);
  }
  if (is_tidy()) return os::futex_forever_ns;
  if (std::min(to_cool_, untouched_) != 0) return 0;
  return std::max<std::int64_t>(period_began_ns_ + unused_ns - now_ns, 0);
}

}  // namespace strata::detail
