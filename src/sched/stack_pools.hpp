// SPDX-License-Identifier: Apache-2.0
// All stacks of a runtime: the pool of the usual size, and those that are made when somebody needs
// them, which then stay: of other sizes, and of the usual one beyond what threads may have.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "context/stack_pool.hpp"

namespace strata::detail {

class stack_pools {
 public:
  // `usual` exists as long as this.
  explicit stack_pools(stack_pool& usual) noexcept : usual_(usual) {}
  // Nobody uses any of those that were made.
  ~stack_pools();
  stack_pools(const stack_pools&) = delete;
  stack_pools& operator=(const stack_pools&) = delete;

  // Stacks of another size than usual, a power of two. Throws strata::error without address space.
  stack_pool& of(std::size_t bytes);
  // A stack of one more pool of the usual size. Null: there are as many as there may be, or no
  // address space.
  [[nodiscard]] stack* further() noexcept;
  // One that somebody has given back to those. Null: all are in use.
  [[nodiscard]] stack* returned() noexcept { return has_others() ? take_returned() : nullptr; }
  // Whether `address` lies on any of all those stacks. Any thread.
  [[nodiscard]] bool holds(const void* address);

  // Of all: as stack_pool's. Returns os::futex_forever_ns: not before others are given back.
  std::int64_t tidy(std::int64_t now_ns) noexcept;
  [[nodiscard]] bool is_tidy() const noexcept;

  // The usual one first. They exist as long as this.
  [[nodiscard]] std::vector<stack_pool*> all();
  // Those beyond the usual one, of its size.
  [[nodiscard]] std::vector<const stack_pool*> all_further() const;

 private:
  [[nodiscard]] bool has_others() const noexcept {
    return others_.load(std::memory_order_relaxed) != 0;
  }
  [[nodiscard]] stack* take_returned() noexcept;
  // One more, which has just been made. With the lock.
  stack_pool& begin(stack_pool& made);

  stack_pool& usual_;
  mutable std::mutex mutex_;
  std::map<std::size_t, std::unique_ptr<stack_pool>> by_bytes_;
  std::vector<std::unique_ptr<stack_pool>> further_;
  // Of both together. Relaxed: most of the time there is none, and nobody needs the lock for that.
  // Who misses one that is just being made comes again.
  std::atomic<std::size_t> others_{0};
};

}  // namespace strata::detail
