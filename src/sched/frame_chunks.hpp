// SPDX-License-Identifier: Apache-2.0
// The memory of one runtime's frames: chunks, each of which is cut into blocks of one size as long
// as any of them is in use, and then may be cut into others. Of those that nobody needs for a while
// the kernel gets the memory back.
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "strata/detail/frame_pool.hpp"

namespace strata::detail {

// What is known of a chunk; apart from it, as its memory comes and goes.
struct frame_chunk {
  // Free blocks of a chunk that came together: its first one, in which this lies.
  struct run;

  run* runs = nullptr;
  frame_chunk* next = nullptr;  // where it is listed
  frame_chunk* prev = nullptr;
  std::uint32_t free = 0;   // blocks, in runs
  std::uint32_t cut = 0;    // blocks, in use or free
  std::uint32_t uncut = 0;  // blocks for which there is memory behind those
};

// A list whose members know their places.
class frame_chunk_list {
 public:
  [[nodiscard]] frame_chunk* front() const noexcept { return first_; }
  void push(frame_chunk& k) noexcept {
    k.prev = nullptr;
    k.next = first_;
    if (first_ != nullptr) first_->prev = &k;
    first_ = &k;
  }
  void remove(frame_chunk& k) noexcept {
    (k.prev != nullptr ? k.prev->next : first_) = k.next;
    if (k.next != nullptr) k.next->prev = k.prev;
  }

 private:
  frame_chunk* first_ = nullptr;
};

// One thread at a time, but for what says otherwise.
class frame_chunks {
 public:
  static constexpr std::size_t chunk_bytes = 64 * 1024;

  frame_chunks() = default;
  ~frame_chunks();
  frame_chunks(const frame_chunks&) = delete;
  frame_chunks& operator=(const frame_chunks&) = delete;

  // Has room for one more. Throws std::bad_alloc.
  void prepare();
  // One that is not cut. Throws std::bad_alloc.
  frame_chunk& take();
  // None of its blocks is in use.
  void give(frame_chunk& k) noexcept;

  // The one in which a block lies. Any thread.
  static frame_chunk& of(const void* block) noexcept;
  struct room {
    std::byte* first;
    std::size_t bytes;
  };
  // Whole pages.
  static room room_of(const frame_chunk& k) noexcept;

  // Gives memory of chunks back that have not been needed since the last time but one that so much
  // time had passed, of some at a time. Returns after how many ns to come again;
  // os::futex_forever_ns: not before another one is given.
  std::int64_t tidy(std::int64_t now_ns, std::int64_t unused_ns) noexcept;
  // Whether no chunk has memory without need. Any thread; a hint.
  [[nodiscard]] bool is_tidy() const noexcept { return warm() == 0; }
  // How many have memory, whether or not they are needed. Any thread.
  [[nodiscard]] std::size_t with_memory() const noexcept {
    return with_memory_.load(std::memory_order_relaxed);
  }

 private:
  static constexpr std::size_t region_chunks = 64;
  static constexpr std::size_t region_bytes = region_chunks * chunk_bytes;
  // Begins where its number of bytes says, so that a block's address tells of its chunk. Lies where
  // the first chunk would begin, which is smaller for that.
  struct region {
    region* next;
    std::byte* memory;
    std::array<frame_chunk, region_chunks> chunks;
  };
  static constexpr std::size_t memory_bytes = 2 * region_bytes;  // somewhere within one begins
  static region& region_of(const void* p) noexcept;
  void begin_region();
  [[nodiscard]] std::size_t warm() const noexcept { return warm_.load(std::memory_order_relaxed); }

  region* regions_ = nullptr;
  frame_chunk_list warm_list_;  // have memory, and nobody needs it
  frame_chunk_list cold_list_;
  // Of no partner: changed by one thread at a time.
  std::atomic<std::size_t> warm_{0};
  std::atomic<std::size_t> with_memory_{0};
  // So many of the warm ones were not needed since period_began_ns_, and so many of these not in
  // the period before either.
  std::size_t untouched_ = 0, to_cool_ = 0;
  std::int64_t period_began_ns_ = 0;
};

}  // namespace strata::detail
