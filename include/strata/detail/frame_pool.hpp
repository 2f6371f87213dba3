// SPDX-License-Identifier: Apache-2.0
// Blocks for frames, tokens and spawned tasks: one pool for each worker, used without
// synchronization. A block may be given back to another worker's pool than it came from; surplus
// goes through a shared depot in batches, so pools stay level.
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "strata/detail/cpu.hpp"

#if defined(STRATA_ASAN)
#include <sanitizer/asan_interface.h>
#endif

namespace strata::detail {

class frame_depot;

class frame_pool {
 public:
  static constexpr std::size_t granule_bytes = 32;
  static constexpr std::size_t pooled_bytes_max = 1024;  // larger blocks come from operator new
  static constexpr std::size_t classes = pooled_bytes_max / granule_bytes;

  explicit frame_pool(frame_depot& depot) noexcept : depot_(depot) {}
  frame_pool(const frame_pool&) = delete;
  frame_pool& operator=(const frame_pool&) = delete;

  void* allocate(std::size_t bytes) {
    count_live(1);
    const std::size_t c = class_of(bytes);
    if (c >= classes) [[unlikely]]
      return allocate_large(bytes);
    if (node* n = free_[c]) [[likely]] {
      unpoison(n, bytes);
      free_[c] = n->next;
      --count_[c];
      return n;
    }
    return refill(c, bytes);
  }

  void deallocate(void* block, std::size_t bytes) noexcept {
    count_live(-1);
    const std::size_t c = class_of(bytes);
    if (c >= classes) [[unlikely]]
      return deallocate_large(block, bytes);
    auto* n = static_cast<node*>(block);
    n->next = free_[c];
    free_[c] = n;
    poison(n, c);
    if (++count_[c] >= spill_above) [[unlikely]]
      spill(c);
  }

  // Blocks given out minus blocks taken back here. Negative in a pool that mostly takes back; the
  // sum over all pools counts the living. Any thread may ask.
  [[nodiscard]] std::int64_t live() const noexcept { return live_.load(std::memory_order_relaxed); }

 private:
  friend class frame_depot;
  struct node {
    node* next;
  };
  static constexpr std::uint32_t spill_above = 512;
  static constexpr std::uint32_t batch = 256;

  void count_live(std::int64_t n) noexcept {
    live_.store(live_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  static constexpr std::size_t class_of(std::size_t bytes) noexcept {
    return (bytes + granule_bytes - 1) / granule_bytes - 1;
  }
  static void poison([[maybe_unused]] void* p, [[maybe_unused]] std::size_t c) noexcept {
#if defined(STRATA_ASAN)
    // The link itself stays readable.
    __asan_poison_memory_region(static_cast<char*>(p) + sizeof(node),
                                (c + 1) * granule_bytes - sizeof(node));
#endif
  }
  static void unpoison([[maybe_unused]] void* p, [[maybe_unused]] std::size_t bytes) noexcept {
#if defined(STRATA_ASAN)
    __asan_unpoison_memory_region(p, bytes);
#endif
  }

  void* refill(std::size_t c, std::size_t bytes);
  void spill(std::size_t c) noexcept;
  void* allocate_large(std::size_t bytes);
  static void deallocate_large(void* block, std::size_t bytes) noexcept;

  std::array<node*, classes> free_{};
  std::array<std::uint32_t, classes> count_{};
  std::atomic<std::int64_t> live_{0};  // written by the worker alone
  frame_depot& depot_;
};

}  // namespace strata::detail
