// SPDX-License-Identifier: Apache-2.0
// What fibers synchronize with beyond slots: lock, semaphore, I-structure, channel, reduction box.
// A fiber never blocks, so every operation that another library would let wait takes the slot that
// is to be signalled instead.
//
// All of them live on one node, are used from there, may be used by any number of fibers and
// threads at the same time, and must outlive their use. Values are trivially copyable and can be
// made by default. What signals a slot or stores a value never blocks where that is on this node;
// otherwise it blocks, and throws, as sync() and put_sync(). Where there is no memory for one that
// has to wait they throw std::bad_alloc.
#pragma once
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <utility>

#include "strata/error.hpp"
#include "strata/fiber.hpp"
#include "strata/slot.hpp"

namespace strata {

/// Permits to be handed out, in order of request.
class fiber_semaphore {
 public:
  explicit fiber_semaphore(std::uint64_t permits) noexcept : permits_(permits) {}

  /// Signals `granted` as soon as a permit is the caller's: at once, or when somebody releases one.
  /// What was done before that release is visible then.
  void acquire(slot_ptr granted);

  /// Takes a permit if there is one. Never blocks.
  [[nodiscard]] bool try_acquire() noexcept;

  /// Gives a permit back: to the fiber that has waited longest, if one waits. It sees what the
  /// caller did before. Where that one cannot be signalled, the next one gets it, or it is kept,
  /// and what that threw is thrown then.
  void release();

 private:
  std::mutex mutex_;
  std::uint64_t permits_;
  std::deque<slot_ptr> waiting_;
};

/// Mutual exclusion across fibers: from the signal of acquire() until release(), which another
/// fiber than the first may call.
class fiber_lock {
 public:
  /// Signals `granted` when the lock is the caller's. What was done before it was released is
  /// visible then.
  void acquire(slot_ptr granted) { permit_.acquire(granted); }
  /// Takes the lock if it is free. Never blocks.
  [[nodiscard]] bool try_acquire() noexcept { return permit_.try_acquire(); }
  /// Hands the lock to the fiber that has waited longest, if one waits; throws as release() of
  /// fiber_semaphore.
  void release() { permit_.release(); }

 private:
  fiber_semaphore permit_{1};
};

/// A value that is written once and read any number of times, before or after: reads that come too
/// early are deferred (Arvind, R. Nikhil, K. Pingali, "I-structures: data structures for parallel
/// computing", 1989, doi:10.1145/69558.69562).
template <class T>
class i_structure {
 public:
  /// Writes the value and answers all deferred reads. Whoever gets the value sees what the caller
  /// did before. Throws misuse_error the second time; and what the first read that cannot be
  /// answered throws, once all others have been.
  void put(const T& value) {
    const detail::uninterrupted guard;
    std::deque<read> deferred;
    {
      const std::lock_guard lock(mutex_);
      if (full_) throw misuse_error("i_structure: written twice");
      value_ = value;
      full_ = true;
      deferred.swap(deferred_);
    }
    std::exception_ptr first;
    for (const read& r : deferred) {
      try {
        put_sync(value, r.to, r.done);
      } catch (...) {
        if (first == nullptr) first = std::current_exception();
      }
    }
    if (first != nullptr) std::rethrow_exception(first);
  }

  /// Stores the value at `to` and signals `done`, now or when it is written.
  void get(global_ptr<T> to, slot_ptr done) {
    const detail::uninterrupted guard;
    {
      const std::lock_guard lock(mutex_);
      if (!full_) {
        deferred_.push_back({to, done});
        return;
      }
    }
    // Written once, so it can be read without the lock now.
    put_sync(value_, to, done);
  }

 private:
  struct read {
    global_ptr<T> to;
    slot_ptr done;
  };
  std::mutex mutex_;
  bool full_ = false;
  T value_{};
  std::deque<read> deferred_;
};

/// Values in order, each to one receiver; receivers that come too early are served in order.
/// Unbounded: the sender's throttle is its own affair (use a fiber_semaphore).
template <class T>
class channel {
 public:
  /// Hands a value to the receiver that has waited longest, or keeps it. Whoever gets it sees what
  /// the caller did before.
  void send(const T& value) {
    const detail::uninterrupted guard;
    request r;
    {
      const std::lock_guard lock(mutex_);
      if (waiting_.empty()) {
        values_.push_back(value);
        return;
      }
      r = waiting_.front();
      waiting_.pop_front();
    }
    put_sync(value, r.to, r.done);
  }

  /// Stores the next value at `to` and signals `done`, now or when there is one.
  void receive(global_ptr<T> to, slot_ptr done) {
    const detail::uninterrupted guard;
    T value{};
    {
      const std::lock_guard lock(mutex_);
      if (values_.empty()) {
        waiting_.push_back({to, done});
        return;
      }
      value = values_.front();
      values_.pop_front();
    }
    put_sync(value, to, done);
  }

 private:
  struct request {
    global_ptr<T> to;
    slot_ptr done;
  };
  std::mutex mutex_;
  std::deque<T> values_;
  std::deque<request> waiting_;
};

/// Combines a known number of contributions, in the order in which they come, and delivers the
/// result.
template <class T, class Combine>
class reduction_box {
 public:
  /// Awaits `contributions` values, at least 1; starts from `identity`; stores the result at `to`
  /// and signals `done`.
  reduction_box(std::uint64_t contributions, T identity, Combine combine, global_ptr<T> to,
                slot_ptr done)
      : left_(contributions),
        value_(std::move(identity)),
        combine_(std::move(combine)),
        to_(to),
        done_(done) {
    if (contributions == 0) throw misuse_error("reduction_box: at least one contribution");
  }

  /// Adds one: calls combine under a lock, so that must be short, and neither wait nor use the box.
  /// The last one delivers, and who is signalled sees what all did before. Throws misuse_error for
  /// one too many, and what combine throws; that one is not counted then.
  void contribute(const T& value) {
    const detail::uninterrupted guard;
    T result{};
    {
      const std::lock_guard lock(mutex_);
      if (left_ == 0) throw misuse_error("reduction_box: a contribution too many");
      value_ = combine_(std::as_const(value_), value);
      if (--left_ != 0) return;
      result = value_;
    }
    // The box may be gone as soon as `done` is signalled.
    put_sync(result, to_, done_);
  }

 private:
  std::mutex mutex_;
  std::uint64_t left_;
  T value_;
  Combine combine_;
  global_ptr<T> to_;
  slot_ptr done_;
};

}  // namespace strata
