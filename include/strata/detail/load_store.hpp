// SPDX-License-Identifier: Apache-2.0
// An atomic variable that can be loaded and stored, and nothing else: what is built of such has no
// atomic read-modify-write, or it would not compile. (Requirement L6: the path on which the policy
// `rotator` schedules.)
#pragma once
#include <atomic>

namespace strata::detail {

// With one writer at a time; who that is, and which load is whose partner, is said where it is
// used.
template <class T>
class load_store {
 public:
  constexpr load_store(T value = {}) noexcept : value_(value) {}
  load_store(const load_store&) = delete;
  load_store& operator=(const load_store&) = delete;

  [[nodiscard]] T load(std::memory_order order) const noexcept { return value_.load(order); }
  void store(T value, std::memory_order order) noexcept { value_.store(value, order); }

 private:
  static_assert(std::atomic<T>::is_always_lock_free);
  std::atomic<T> value_;
};

}  // namespace strata::detail
