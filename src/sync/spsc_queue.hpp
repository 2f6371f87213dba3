// SPDX-License-Identifier: Apache-2.0
// An unbounded queue of pointers from one producer to one consumer: loads and stores only, no
// read-modify-write, no lock (Lesser Bear's Waiver Queue, docs/architecture.md#sources). A list of
// blocks; the consumer gives the last empty block back to the producer, so that a queue in balance
// allocates nothing. Source of one-producer queues with loads and stores: L. Lamport, "Specifying
// concurrent program modules", 1983 (doi:10.1145/69624.357207).
#pragma once
#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <new>

#include "strata/detail/cpu.hpp"
#include "strata/detail/load_store.hpp"

namespace strata::detail {

template <class T, template <class> class Atomic = load_store, std::size_t BlockItems = 62>
class spsc_queue {
 public:
  spsc_queue() : first_(new block), last_(first_) {}
  ~spsc_queue() {
    delete spare_.load(std::memory_order_relaxed);
    while (first_ != nullptr) {
      block* const next = first_->next.load(std::memory_order_relaxed);
      delete first_;
      first_ = next;
    }
  }
  spsc_queue(const spsc_queue&) = delete;
  spsc_queue& operator=(const spsc_queue&) = delete;

  // ---- producer ----

  void push(T* item) {
    if (!try_push(item)) throw std::bad_alloc();
  }
  // The same; false: it takes one more block, for which there is no memory.
  [[nodiscard]] bool try_push(T* item) noexcept {
    const std::size_t n = pushed_.load(std::memory_order_relaxed);
    if (n % BlockItems == 0 && n != 0) {
      block* b = spare_.load(std::memory_order_acquire);
      if (b != nullptr) {
        spare_.store(nullptr, std::memory_order_relaxed);
        b->next.store(nullptr, std::memory_order_relaxed);
      } else {
        b = new (std::nothrow) block;
        if (b == nullptr) return false;
      }
      last_->next.store(b, std::memory_order_relaxed);
      last_ = b;
    }
    last_->items[n % BlockItems].store(item, std::memory_order_relaxed);
    // Release: who sees the count sees the item, and the block it is in. Partner: pop().
    pushed_.store(n + 1, std::memory_order_release);
    return true;
  }

  // ---- consumer ----

  // Null when it is empty.
  T* pop() {
    const std::size_t n = popped_.load(std::memory_order_relaxed);
    // Acquire: partner is the release in push().
    if (n == pushed_.load(std::memory_order_acquire)) return nullptr;
    if (n % BlockItems == 0 && n != 0) {
      block* const empty = first_;
      first_ = empty->next.load(std::memory_order_relaxed);
      // The producer takes it only when it finds it here, we lay it there only when it is not: the
      // word has one writer at a time. Release: it is ours no more.
      if (spare_.load(std::memory_order_acquire) == nullptr) {
        spare_.store(empty, std::memory_order_release);
      } else {
        delete empty;
      }
    }
    T* const item = first_->items[n % BlockItems].load(std::memory_order_relaxed);
    // Release for size(): not before the item is out.
    popped_.store(n + 1, std::memory_order_release);
    return item;
  }

  // ---- anybody ----

  // Exact for nobody but roughly right for all; zero only if it was empty at some time since the
  // call began, for who has passed a fence after the push.
  [[nodiscard]] std::size_t size() const noexcept {
    const std::size_t out = popped_.load(std::memory_order_acquire);
    return pushed_.load(std::memory_order_acquire) - out;
  }

  // ---- for people ----

  // Out of a copy of a queue that others use, as ready_queue::peek().
  template <class Read>
  std::size_t peek(T** to, std::size_t max, Read read) const {
    const std::size_t begin = popped_.load(std::memory_order_relaxed);
    const std::size_t n = std::min(size(), max);
    const block* at = first_;
    for (std::size_t i = 0; i < n;) {
      const std::size_t place = (begin + i) % BlockItems;
      // The consumer leaves a block only when it takes what comes after it.
      if (place == 0 && begin + i != 0 && !read(&at, &at->next, sizeof at)) return i;
      const std::size_t here = std::min(BlockItems - place, n - i);
      if (at == nullptr || !read(to + i, &at->items[place], here * sizeof(T*))) return i;
      i += here;
    }
    return n;
  }

 private:
  struct block {
    Atomic<block*> next{nullptr};
    std::array<Atomic<T*>, BlockItems> items{};
  };

  alignas(destructive_bytes) Atomic<std::size_t> popped_{0};
  block* first_;
  alignas(destructive_bytes) Atomic<std::size_t> pushed_{0};
  block* last_;
  Atomic<block*> spare_{nullptr};
};

}  // namespace strata::detail
