// SPDX-License-Identifier: Apache-2.0
// What threads that are no workers bring: the program's own, and those that handle messages. What
// finds nothing waiting is handed over without a lock, for somebody is likely to wait for it:
// whoever takes it has one line of another core's to wait for. The rest goes to queues behind a
// lock.
//
// Ready work, such as a thread that has been woken or a fiber whose last signal has come, takes its
// turn with what is ready here: somebody waits for it. Tokens may wait longer, so that a worker
// first finishes what it has begun.
#pragma once
#include <algorithm>
#include <atomic>
#include <deque>
#include <mutex>

#include "sched/handover.hpp"
#include "strata/detail/cpu.hpp"
#include "strata/detail/ready_queue.hpp"
#include "strata/detail/task.hpp"

namespace strata::detail {

class injected_work {
 public:
  void push(task* t) {
    const bool ready = t->type->wire == nullptr;
    // Not past those that wait already.
    if (ready ? !has_ready() && first_.put(t) : nothing_queues() && first_token_.put(t)) return;
    const std::lock_guard lock(mutex_);
    if (ready) {
      ready_.push(t);
      ready_count_.fetch_add(1, std::memory_order_relaxed);
    } else {
      tokens_.push_back(t);
      most_tokens_ = std::max(most_tokens_, tokens_.size());
    }
    // Seq_cst: published before the caller looks for sleepers. Partner: has_any().
    count_.fetch_add(1, std::memory_order_seq_cst);
  }

  // Ready work first; null: nothing.
  task* take() {
    if (task* const t = first_.take()) return t;
    if (nothing_queues()) return first_token_.take();
    const std::lock_guard lock(mutex_);
    if (task* const t = front_of_ready()) return t;
    if (task* const t = first_token_.take()) return t;
    if (tokens_.empty()) return nullptr;
    task* const t = tokens_.front();
    tokens_.pop_front();
    count_.fetch_sub(1, std::memory_order_relaxed);
    return t;
  }
  task* take_ready() {
    if (task* const t = first_.take()) return t;
    if (ready_count_.load(std::memory_order_relaxed) == 0) return nullptr;
    const std::lock_guard lock(mutex_);
    return front_of_ready();
  }

  // Seq_cst for whoever is about to sleep and has said so. Partner: push().
  [[nodiscard]] bool has_any() const noexcept { return size() != 0; }
  [[nodiscard]] std::size_t size() const noexcept {
    return count_.load(std::memory_order_seq_cst) + (first_.holds_something() ? 1 : 0) +
           (first_token_.holds_something() ? 1 : 0);
  }
  // Tokens that wait for a worker with nothing else to do: how many, and how many at most so far.
  struct waiting_tokens {
    std::size_t now, most;
  };
  [[nodiscard]] waiting_tokens count_tokens() {
    const std::lock_guard lock(mutex_);
    const std::size_t handed = first_token_.holds_something() ? 1 : 0;
    return {tokens_.size() + handed, std::max(most_tokens_, tokens_.size()) + handed};
  }
  // A hint.
  [[nodiscard]] bool has_ready() const noexcept {
    return first_.may_hold_something() || ready_count_.load(std::memory_order_relaxed) != 0;
  }

  // For people: ready work, as ready_queue::peek() finds it, and what lies before it, which may be
  // somebody's by now.
  [[nodiscard]] const ready_queue& ready() const noexcept { return ready_; }
  [[nodiscard]] task* first() const noexcept { return first_.glance(); }

  // Nothing comes in while this lives, and who brings something waits. False, and nothing is
  // closed, when something is in.
  class closure {
   public:
    explicit closure(injected_work& of) : of_(of), lock_(of.mutex_) {
      if (!of.nothing_queues() || !of.first_.close()) return;
      closed_ = of.first_token_.close();
      if (!closed_) of.first_.open();
    }
    closure(const closure&) = delete;
    closure& operator=(const closure&) = delete;
    ~closure() {
      if (!closed_) return;
      of_.first_token_.open();
      of_.first_.open();
    }
    explicit operator bool() const noexcept { return closed_; }

   private:
    injected_work& of_;
    std::lock_guard<std::mutex> lock_;
    bool closed_ = false;
  };

 private:
  // A hint, but for who has the lock.
  [[nodiscard]] bool nothing_queues() const noexcept {
    return count_.load(std::memory_order_relaxed) == 0;
  }
  task* front_of_ready() {
    task* const t = ready_.pop();
    if (t == nullptr) return nullptr;
    ready_count_.fetch_sub(1, std::memory_order_relaxed);
    count_.fetch_sub(1, std::memory_order_relaxed);
    return t;
  }

  alignas(destructive_bytes) std::mutex mutex_;
  ready_queue ready_;
  std::deque<task*> tokens_;
  std::size_t most_tokens_ = 0;  // that have been there at the same time
  // Who searches reads these all the time, which must not take the rest from who brings something.
  alignas(destructive_bytes) handover<task> first_;
  handover<task> first_token_;
  std::atomic<std::size_t> count_{0};  // in both queues
  std::atomic<std::size_t> ready_count_{0};
};

}  // namespace strata::detail
