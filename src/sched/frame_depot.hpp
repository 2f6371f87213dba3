// SPDX-License-Identifier: Apache-2.0
// Where pools of one runtime exchange batches of free blocks. Blocks return to the chunk that they
// are of, so a chunk of which none is in use is known, and can be cut into blocks of another size.
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "sched/frame_chunks.hpp"
#include "strata/detail/frame_pool.hpp"

namespace strata::detail {

class frame_depot {
 public:
  using node = frame_pool::node;
  struct chain {
    node* first = nullptr;
    std::uint32_t count = 0;
  };

  // For who may find later that the process may have no more mappings: some frames it has then.
  // Throws std::bad_alloc.
  void prepare() { chunks_.prepare(); }

  void give(std::size_t c, chain blocks) noexcept;
  // Some free blocks of class c: given back ones if there are any, else fresh. Throws
  // std::bad_alloc.
  chain take(std::size_t c);

  // As frame_chunks'; any thread.
  std::int64_t tidy(std::int64_t now_ns) noexcept;
  [[nodiscard]] bool is_tidy() const noexcept { return chunks_.is_tidy(); }
  [[nodiscard]] std::size_t bytes() const noexcept {
    return chunks_.with_memory() * frame_chunks::chunk_bytes;
  }
  // For tests: memory that nobody needs for so long is given back.
  void forget_after(std::int64_t unused_ns) noexcept {
    unused_ns_.store(unused_ns, std::memory_order_relaxed);
  }

 private:
  using run = frame_chunk::run;
  static constexpr std::size_t bytes_of(std::size_t c) noexcept {
    return (c + 1) * frame_pool::granule_bytes;
  }
  static bool has_some(const frame_chunk& k) noexcept { return k.free != 0 || k.uncut != 0; }
  // Apart by the chunks they are of, the runs one after the other.
  static run* split(chain blocks) noexcept;
  static chain take_runs(frame_chunk& k) noexcept;
  static chain cut(frame_chunk& k, std::size_t c) noexcept;

  // A lock is enough: a pool comes here once for many blocks.
  std::mutex mutex_;
  std::array<frame_chunk_list, frame_pool::classes> with_some_{};  // those that have any to take
  frame_chunks chunks_;
  std::atomic<std::int64_t> unused_ns_{1'000'000'000};  // of no partner
};

}  // namespace strata::detail
