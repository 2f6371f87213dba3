// SPDX-License-Identifier: Apache-2.0
// Atomics that break one rule each. A model of code that uses them has to fail, or it would not
// notice the same mistake in the code either.
#pragma once
#include "relacy_atomic.hpp"
//
#include <atomic>
#include <type_traits>

namespace strata::model {

// Everything is relaxed.
template <class T>
using relaxed_atomic = basic_atomic<T, strength::relaxed>;

// What should be seq_cst is acquire and release only.
template <class T>
using acquire_release_atomic = basic_atomic<T, strength::acquire_release>;

// A compare-exchange is a load and a store.
template <class T>
class divided_atomic : public model_atomic<T> {
  using order = std::memory_order;

 public:
  using model_atomic<T>::model_atomic;

  bool compare_exchange_weak(T& expected, T value, order, order, const code_place& at = {}) {
    const T now = this->load(order::acquire, at);
    if (now != expected) {
      expected = now;
      return false;
    }
    this->store(value, order::release, at);
    return true;
  }
};

// An exchange is a store alone.
template <class T>
class storing_atomic : public model_atomic<T> {
 public:
  using model_atomic<T>::model_atomic;

  void exchange(T value, std::memory_order, const code_place& at = {}) {
    this->store(value, std::memory_order_release, at);
  }
};

// A compare-exchange that would leave the value as it is only reads it.
template <class T>
class changing_atomic : public model_atomic<T> {
  using order = std::memory_order;

 public:
  using model_atomic<T>::model_atomic;

  bool compare_exchange_weak(T& expected, T value, order success, order failure,
                             const code_place& at = {}) {
    if (expected != value)
      return model_atomic<T>::compare_exchange_weak(expected, value, success, failure, at);
    const T now = this->load(order::acquire, at);
    if (now == expected) return true;
    expected = now;
    return false;
  }
};

// The owner of a deque does not see that its split is provisional, and believes the old one valid.
template <class T>
class unsuspecting_atomic : public model_atomic<T> {
  using order = std::memory_order;

 public:
  using model_atomic<T>::model_atomic;

  T load(order o, const code_place& at = {}) const {
    const T now = model_atomic<T>::load(o, at);
    if constexpr (std::is_unsigned_v<T>) {
      constexpr T provisional = T{1} << 63;
      if (o == order::relaxed && (now & provisional) != 0) return (now & ~provisional) - 1;
    }
    return now;
  }
};

}  // namespace strata::model
