// SPDX-License-Identifier: Apache-2.0
// Where pools of one runtime exchange batches of free blocks, and who owns the memory of all of
// them.
#pragma once
#include <array>
#include <memory>
#include <mutex>
#include <vector>

#include "strata/detail/frame_pool.hpp"

namespace strata::detail {

class frame_depot {
 public:
  using node = frame_pool::node;
  struct chain {
    node* first = nullptr;
    std::uint32_t count = 0;
  };

  void give(std::size_t c, chain blocks) noexcept;
  // A batch of free blocks of class c: given back ones if there are any, else fresh.
  chain take(std::size_t c);

 private:
  // The first block of a chain that lies here: who gives blocks back must not need memory for it.
  struct kept : node {
    kept* next_chain;
    std::uint32_t count;
  };
  static_assert(sizeof(kept) <= frame_pool::granule_bytes);
  // Blocks of whole lines begin with one: nobody waits for two where one would hold a frame.
  struct alignas(line_bytes) line {
    std::byte bytes[line_bytes];
  };
  static constexpr std::size_t chunk_bytes = 64 * 1024;
  chain carve(std::size_t c);

  // A lock is enough: a pool comes here once in `batch` operations.
  std::mutex mutex_;
  std::array<kept*, frame_pool::classes> chains_{};
  std::vector<std::unique_ptr<line[]>> chunks_;
  std::byte* fresh_ = nullptr;
  std::size_t fresh_bytes_ = 0;
};

}  // namespace strata::detail
