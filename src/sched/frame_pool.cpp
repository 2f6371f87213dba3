// SPDX-License-Identifier: Apache-2.0
#include "strata/detail/frame_pool.hpp"

#include <new>

#include "sched/frame_depot.hpp"

namespace strata::detail {

void* frame_pool::refill(std::size_t c, std::size_t bytes) {
  frame_depot::chain blocks;
  try {
    blocks = depot_.take(c);
  } catch (...) {
    count_live(-1);
    throw;
  }
  node* first = blocks.first;
  unpoison(first, bytes);
  free_[c] = first->next;
  count_[c] = blocks.count - 1;
  return first;
}

void frame_pool::spill(std::size_t c) noexcept {
  const frame_depot::chain blocks{free_[c], batch};
  for (std::uint32_t i = 0; i < batch; ++i) free_[c] = free_[c]->next;
  count_[c] -= batch;
  depot_.give(c, blocks);
}

void* frame_pool::allocate_large(std::size_t bytes) {
  void* const block = ::operator new(bytes, std::nothrow);
  if (block != nullptr) return block;
  count_live(-1);
  throw std::bad_alloc();
}

void frame_pool::deallocate_large(void* block, std::size_t) noexcept {
  ::operator delete(block);  // clang 14 declares the sized form only on request
}

}  // namespace strata::detail
