// SPDX-License-Identifier: Apache-2.0
// std::atomic's interface on Relacy's atomics, so that the lock-free types compile against the
// model checker unchanged; and weaker atomics, for which the models must fail.
//
// Where Relacy differs from the C++ memory model:
// - a read-modify-write, and a compare-exchange that fails, always see the newest value;
// - of older values it remembers two, so a load is at most two stores behind;
// - loads never see stores that have not happened yet;
// - two seq_cst fences synchronise with each other. A seq_cst fence and a seq_cst operation do not,
//   although C++20 orders them; so a proof here needs fences on both sides or operations on both,
//   or, where the code has a fence on one side, atomics whose changes are fences.
#pragma once
#include "relacy.hpp"
//
#include <atomic>

namespace strata::model {

// Where the operation stands in the code under test, for the history that is printed on failure.
struct code_place {
  rl::debug_info info;
  // Not explicit: a default argument converts from nothing, at the place of the call.
  code_place(const char* function = __builtin_FUNCTION(), const char* file = __builtin_FILE(),
             unsigned line = __builtin_LINE())
      : info(function, file, line) {}
};

// How much of the order that the code asks for the atomics give. With fences: each seq_cst change
// is followed by one, which orders relaxed loads after it, too; C++20 orders only seq_cst ones.
enum class strength { with_fences, as_written, acquire_release, relaxed };

template <class T, strength Strength>
class basic_atomic {
  using order = std::memory_order;

 public:
  basic_atomic() : basic_atomic(T{}) {}
  basic_atomic(T value) : value_(value) {}
  basic_atomic(const basic_atomic&) = delete;
  basic_atomic& operator=(const basic_atomic&) = delete;

  T load(order o = order::seq_cst, const code_place& at = {}) const {
    return value_.load(for_load(o), at.info);
  }
  void store(T value, order o = order::seq_cst, const code_place& at = {}) {
    value_.store(value, for_store(o), at.info);
    changed(o, at);
  }
  T exchange(T value, order o = order::seq_cst, const code_place& at = {}) {
    const T before = value_.exchange(value, for_both(o), at.info);
    changed(o, at);
    return before;
  }
  T fetch_add(T more, order o = order::seq_cst, const code_place& at = {}) {
    const T before = value_.fetch_add(more, for_both(o), at.info);
    changed(o, at);
    return before;
  }
  T fetch_sub(T less, order o = order::seq_cst, const code_place& at = {}) {
    const T before = value_.fetch_sub(less, for_both(o), at.info);
    changed(o, at);
    return before;
  }
  bool compare_exchange_strong(T& expected, T value, order success, order failure,
                               const code_place& at = {}) {
    const bool done = value_.compare_exchange_strong(expected, value, for_both(success), at.info,
                                                     for_load(failure), at.info);
    if (done) changed(success, at);
    return done;
  }
  // Fails spuriously now and then.
  bool compare_exchange_weak(T& expected, T value, order success, order failure,
                             const code_place& at = {}) {
    const bool done = value_.compare_exchange_weak(expected, value, for_both(success), at.info,
                                                   for_load(failure), at.info);
    if (done) changed(success, at);
    return done;
  }

 private:
  static void changed(order o, const code_place& at) {
    if (Strength == strength::with_fences && o == order::seq_cst)
      rl::atomic_thread_fence(rl::mo_seq_cst, at.info);
  }
  static constexpr rl::memory_order translated(order o) {
    switch (o) {
      case order::relaxed:
        return rl::mo_relaxed;
      case order::consume:
        return rl::mo_consume;
      case order::acquire:
        return rl::mo_acquire;
      case order::release:
        return rl::mo_release;
      case order::acq_rel:
        return rl::mo_acq_rel;
      case order::seq_cst:
        return rl::mo_seq_cst;
    }
    return rl::mo_seq_cst;
  }
  static constexpr rl::memory_order weakened(order o, rl::memory_order instead_of_seq_cst) {
    if (Strength == strength::relaxed) return rl::mo_relaxed;
    if (Strength == strength::acquire_release && o == order::seq_cst) return instead_of_seq_cst;
    return translated(o);
  }
  static constexpr rl::memory_order for_load(order o) { return weakened(o, rl::mo_acquire); }
  static constexpr rl::memory_order for_store(order o) { return weakened(o, rl::mo_release); }
  static constexpr rl::memory_order for_both(order o) { return weakened(o, rl::mo_acq_rel); }

  rl::atomic<T> value_;
};

template <class T>
using model_atomic = basic_atomic<T, strength::as_written>;

}  // namespace strata::model
