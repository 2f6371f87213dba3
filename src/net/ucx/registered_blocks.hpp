// SPDX-License-Identifier: Apache-2.0
// Memory that the program has registered: which block holds a span, and when UCX may let go of one.
// That is once, when its registration has ended and no transfer uses it any more.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "net/ucx/ucp_library.hpp"

namespace strata::net::ucx {

struct registered_block {
  explicit registered_block(std::span<std::byte> bytes_) : bytes(bytes_) {}
  const std::span<std::byte> bytes;
  ucp_mem_h handle = nullptr;          // UCX's for it; null: it gave none
  std::atomic<std::uint64_t> uses{0};  // so far

 private:
  friend class registered_blocks;
  [[nodiscard]] std::uintptr_t begin() const noexcept {
    return reinterpret_cast<std::uintptr_t>(bytes.data());
  }
  [[nodiscard]] std::uintptr_t end() const noexcept { return begin() + bytes.size(); }
  std::size_t users = 0;
  bool has_ended = false;
  std::shared_ptr<registered_block> next_idle;
};

// Not thread-safe, but for `uses`.
class registered_blocks {
 public:
  void add(const std::shared_ptr<registered_block>& b) {
    const auto place = by_begin_.insert(first_behind(b->begin()), {b, nullptr});
    find_farthest(static_cast<std::size_t>(place - by_begin_.begin()));
  }
  // One that holds all of these bytes, until let_go(); null: none does.
  [[nodiscard]] std::shared_ptr<registered_block> use(std::span<const std::byte> bytes) noexcept {
    const auto begin = reinterpret_cast<std::uintptr_t>(bytes.data());
    const auto behind = first_behind(begin);
    if (behind == by_begin_.begin()) return nullptr;
    const std::shared_ptr<registered_block>& b = std::prev(behind)->farthest;
    if (b->end() < begin + bytes.size()) return nullptr;
    ++b->users;
    b->uses.fetch_add(1, std::memory_order_relaxed);
    return b;
  }
  // b: as use() returned it, null too.
  void let_go(std::shared_ptr<registered_block> b) noexcept {
    if (b == nullptr) return;
    if (--b->users == 0 && b->has_ended) retire(std::move(b));
  }

  // Its registration is over: no further transfer uses it. It need not have been added.
  void end(const std::shared_ptr<registered_block>& b) noexcept {
    forget(*b);
    b->has_ended = true;
    if (b->users == 0) retire(b);
  }
  void end_all() noexcept {
    while (!by_begin_.empty()) {
      // Not a reference: it goes with its entry.
      const std::shared_ptr<registered_block> last = by_begin_.back().own;
      end(last);
    }
  }
  // Calls f(handle) once for each that has ended and is not used: it is nobody's any more.
  template <class F>
  void for_each_idle(F&& f) {
    while (idle_ != nullptr) {
      const std::shared_ptr<registered_block> b = std::move(idle_);
      idle_ = std::move(b->next_idle);
      if (b->handle != nullptr) f(b->handle);
    }
  }

 private:
  struct entry {
    std::shared_ptr<registered_block> own;
    // Of this one and those before it the one that reaches farthest: if any of them holds a span
    // that begins here or later, this does.
    std::shared_ptr<registered_block> farthest;
  };

  [[nodiscard]] std::vector<entry>::iterator first_behind(std::uintptr_t begin) noexcept {
    return std::upper_bound(by_begin_.begin(), by_begin_.end(), begin,
                            [](std::uintptr_t at, const entry& e) { return at < e.own->begin(); });
  }
  void find_farthest(std::size_t from) noexcept {
    for (std::size_t i = from; i < by_begin_.size(); ++i) {
      entry& e = by_begin_[i];
      e.farthest = e.own;
      if (i != 0 && by_begin_[i - 1].farthest->end() > e.own->end())
        e.farthest = by_begin_[i - 1].farthest;
    }
  }
  void forget(const registered_block& b) noexcept {
    const auto found = std::find_if(by_begin_.begin(), by_begin_.end(),
                                    [&](const entry& e) { return e.own.get() == &b; });
    if (found == by_begin_.end()) return;
    find_farthest(static_cast<std::size_t>(by_begin_.erase(found) - by_begin_.begin()));
  }
  // Nothing here may fail for want of memory, so it is a list of the blocks themselves.
  void retire(std::shared_ptr<registered_block> b) noexcept {
    b->next_idle = std::move(idle_);
    idle_ = std::move(b);
  }

  std::vector<entry> by_begin_;
  std::shared_ptr<registered_block> idle_;  // the first of them
};

}  // namespace strata::net::ucx
