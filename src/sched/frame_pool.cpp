// SPDX-License-Identifier: Apache-2.0
#include "strata/detail/frame_pool.hpp"

#include <new>

#include "sched/frame_depot.hpp"

namespace strata::detail {

void frame_depot::give(std::size_t c, chain blocks) noexcept {
  frame_pool::unpoison(blocks.first, sizeof(kept));
  const std::lock_guard lock(mutex_);
  node* const after = blocks.first->next;
  chains_[c] = ::new (static_cast<void*>(blocks.first)) kept{{after}, chains_[c], blocks.count};
}

frame_depot::chain frame_depot::take(std::size_t c) {
  const std::lock_guard lock(mutex_);
  kept* const first = chains_[c];
  if (first == nullptr) return carve(c);
  chains_[c] = first->next_chain;
  return {first, first->count};
}

frame_depot::chain frame_depot::carve(std::size_t c) {
  const std::size_t bytes = (c + 1) * frame_pool::granule_bytes;
  // Few at a time for a start: a program that needs ten frames should touch ten.
  constexpr std::uint32_t wanted = 32;
  static_assert(wanted * frame_pool::granule_bytes % line_bytes == 0, "the next begins a line");
  if (fresh_bytes_ < bytes * wanted) {
    chunks_.push_back(std::make_unique_for_overwrite<line[]>(chunk_bytes / line_bytes));
    fresh_ = chunks_.back()[0].bytes;
    fresh_bytes_ = chunk_bytes;
  }
  chain blocks;
  for (; blocks.count < wanted; ++blocks.count) {
    auto* n = reinterpret_cast<node*>(fresh_);
    n->next = blocks.first;
    blocks.first = n;
    fresh_ += bytes;
    fresh_bytes_ -= bytes;
  }
  return blocks;
}

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
  frame_depot::chain blocks{free_[c], batch};
  node* last = blocks.first;
  for (std::uint32_t i = 1; i < batch; ++i) last = last->next;
  free_[c] = last->next;
  last->next = nullptr;
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
