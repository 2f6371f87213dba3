// SPDX-License-Identifier: Apache-2.0
// The stacks of one runtime: one large mapping, cut into equal pieces with a guard page below each.
// Memory is used where a stack was touched, nowhere else, and given back when a stack has lain
// unused for a while.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "context/stack.hpp"
#include "os/pages.hpp"
#include "strata/error.hpp"

namespace strata::detail {

class stack_pool {
 public:
  // `entry(stack)` is what a new stack runs; it never returns. Without guards, or where the kernel
  // has no room for more of them, a canary at a stack's end is looked at when it is given back.
  // `whose_size`: for who has to know what to change.
  enum class whose { settings, thread };
  stack_pool(std::size_t stack_bytes, void (*entry)(void*), bool guards = true,
             whose whose_size = whose::settings);
  ~stack_pool();
  stack_pool(const stack_pool&) = delete;
  stack_pool& operator=(const stack_pool&) = delete;

  // The last so many are for take_kept() alone. Before any is taken.
  void keep(std::size_t count) noexcept;
  // A stack that nobody uses. Throws strata::error when address space or mappings are exhausted.
  stack* take();
  // The same without making one ready, for those whom others wait for; null: there is none.
  stack* take_ready();
  // One of those that take() leaves; null: there is none, or no memory for what is kept of it.
  stack* take_kept() noexcept;
  // What take() throws.
  [[nodiscard]] error exhausted() const;
  void give(stack* s) noexcept;
  // About how many more can be taken, the kept ones included.
  [[nodiscard]] std::size_t left() const noexcept {
    return capacity_ - taken_max() + free_count_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
  // None but the kept ones, as far as others do not take or give any meanwhile.
  [[nodiscard]] bool only_kept_are_left() const noexcept { return left() <= kept_; }

  // Gives back the memory of some of those that nobody has taken for a second; give() does it now
  // and then. Any thread that has nothing better to do. Returns after how many ns there is more to
  // do, 0: at once; negative: not before others are given back.
  std::int64_t tidy(std::int64_t now_ns) noexcept;
  // Nothing to do, whenever. A hint.
  [[nodiscard]] bool is_tidy() const noexcept {
    return free_count_.load(std::memory_order_relaxed) == trimmed();
  }
  // How long that is instead of a second.
  void forget_after(std::int64_t unused_ns) noexcept {
    unused_ns_.store(unused_ns, std::memory_order_relaxed);
  }
  [[nodiscard]] std::int64_t unused_ns() const noexcept {
    return unused_ns_.load(std::memory_order_relaxed);
  }

  // How deep the deepest stack was used, in bytes, to a page; and the memory that all hold now. One
  // system call for each stack.
  struct use {
    std::size_t deepest = 0;
    std::size_t resident = 0;
  };
  [[nodiscard]] use measure() const noexcept;

  // The stack whose guard page holds `address`, null when none does. Safe in a signal handler.
  [[nodiscard]] const stack* guarding(const void* address) const noexcept;
  // Whether `address` lies on any of them. Any thread.
  [[nodiscard]] bool holds(const void* address) const noexcept {
    const auto a = reinterpret_cast<std::uintptr_t>(address);
    const auto first = reinterpret_cast<std::uintptr_t>(pieces.first);
    return a >= first && a - first < capacity_ * stride_bytes_;
  }
  [[nodiscard]] std::size_t stack_bytes() const noexcept { return stack_bytes_; }
  [[nodiscard]] whose whose_size() const noexcept { return whose_size_; }
  // How many were ever taken.
  [[nodiscard]] std::size_t taken_max() const noexcept {
    return taken_.load(std::memory_order_relaxed);
  }
  // All that were ever taken, in use or not, are among the first so many. Of one that was not, the
  // header is all zeros, so it has no kind.
  [[nodiscard]] std::size_t cut() const noexcept {
    return pieces.cut.load(std::memory_order_acquire);
  }
  // It exists as long as the pool; i < cut().
  [[nodiscard]] stack* header(std::size_t i) const noexcept;

  // Stack i's header lies so far below its top, and i % colours times colour_bytes further: all
  // tops have the same place in their pages, and caches would find room for few of them.
  static constexpr std::size_t header_bytes = (sizeof(stack) + 63) / 64 * 64;
  static constexpr std::size_t colours = 8, colour_bytes = 128;

  // For debuggers, too: see threads/debugger.cpp.
  struct {
    std::byte* first = nullptr;
    std::size_t stride = 0;
    // In use, free or made ready; the rest of the mapping was never touched.
    std::atomic<std::size_t> cut{0};
  } pieces;

 private:
  // Pieces made ready together: guards, and memory for the page that every stack touches first,
  // each with one system call where the kernel can.
  struct batch {
    std::size_t first, end;
  };
  // With the lock:
  // One that leaves at least so many. Throws as take() does. The lock is released when it returns.
  stack* take_leaving(std::size_t least, std::unique_lock<std::mutex>& lock);
  stack* take_free();
  // One of ready_. The lock is released when it returns.
  stack* take_fresh(std::unique_lock<std::mutex>& lock);
  // Puts another batch into ready_, or lets others do that; the lock is released meanwhile.
  void make_another_ready(std::unique_lock<std::mutex>& lock);
  batch cut_batch();
  // Both return how many have a guard, from the first on; `done` of them had one before.
  std::size_t make_ready(const batch& b) noexcept;
  std::size_t guard_each(const batch& b, std::size_t done) noexcept;
  // What is written at the end of piece i, and a context that begins with entry_.
  stack* begin(std::size_t i);
  [[nodiscard]] std::size_t index_of(const stack& s) const noexcept {
    return static_cast<std::size_t>(reinterpret_cast<const std::byte*>(&s) - pieces.first) /
           pieces.stride;
  }
  void tidy_some(std::int64_t now_ns, std::size_t most) noexcept;
  [[nodiscard]] std::size_t trimmed() const noexcept {
    return trimmed_.load(std::memory_order_relaxed);
  }
  void give_back_memory(const stack& s) noexcept;
  // Bytes from the lowest page that has memory up to the end of the stack.
  [[nodiscard]] std::size_t depth(std::size_t i, std::size_t* resident) const noexcept;

  const std::size_t guard_bytes_;
  const std::size_t stack_bytes_;  // what was asked for, in whole pages
  const whose whose_size_;
  const std::size_t piece_bytes_;  // with header and colours, without the guard
  const std::size_t stride_bytes_;
  void (*const entry_)(void*);
  os::page_range range_;
  std::mutex mutex_;
  bool guards_;
  std::atomic<bool> in_batches_{true};  // the kernel can
  std::vector<batch> ready_;            // to be begun
  unsigned preparing_ = 0;              // threads that make another one ready, without the lock
  std::atomic<std::size_t> taken_{0};
  std::atomic<std::size_t> first_unguarded_{SIZE_MAX};
  const std::size_t capacity_;
  std::size_t kept_ = 0;
  // Taken from the back, so those in front are the ones that nobody needs. The first trimmed_ of
  // them have given their memory back, and the first untouched_ were there all the time since
  // period_began_ns_.
  std::vector<stack*> free_;
  std::atomic<std::size_t> free_count_{0};
  std::atomic<std::size_t> trimmed_{0};  // of no partner: changed with the lock
  std::size_t untouched_ = 0, to_trim_ = 0;
  std::int64_t period_began_ns_ = 0;
  std::atomic<std::int64_t> unused_ns_{1'000'000'000};  // of no partner
  unsigned gives_ = 0;
  std::atomic<std::size_t> deepest_{0};  // of those that have given memory back
  // From where stacks count their lives, and the most of one that has given memory back: who begins
  // on it anew has at least as many behind it.
  const std::uint32_t first_life_;
  std::uint32_t lives_;
};

// Ends the program with the name of s's task when it has run over the end of its stack, which has
// no guard page. Before it is left for the last time.
void check_canary(const stack& s) noexcept;

}  // namespace strata::detail
