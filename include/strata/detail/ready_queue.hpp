// SPDX-License-Identifier: Apache-2.0
// Tasks that one worker has to run next, in order of arrival (EARTH's ready queue, Lesser Bear's
// Protect Queue). A ring of pointers, because one fiber can be enabled twice before it runs once.
//
// Its owner pays for no locked instruction and no fence: what it writes can only be loaded and
// stored. Another worker may take half of it (policy `steal`), when the owner is deep in something
// long: it announces itself, makes the owner's processor pass a fence, and waits until the owner is
// not inside. Source of the asymmetric Dekker protocol: D. Dice, H. Huang, M. Yang, "Asymmetric
// Dekker synchronization", 2001.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

#include "strata/detail/fences.hpp"
#include "strata/detail/load_store.hpp"
#include "strata/detail/task.hpp"

namespace strata::detail {

class ready_queue {
 public:
  ready_queue() = default;
  ~ready_queue() { give_ring(); }
  ready_queue(const ready_queue&) = delete;
  ready_queue& operator=(const ready_queue&) = delete;

  // ---- owner ----

  void push(task* t) {
    if (!try_push(t)) [[unlikely]]
      throw std::bad_alloc();
  }
  // The same; false: it is full, and there is no memory for a larger one.
  [[nodiscard]] bool try_push(task* t) noexcept {
    const inside guard(*this);
    std::size_t end = tail_.load(std::memory_order_relaxed);
    if (end - head_.load(std::memory_order_relaxed) > mask_) [[unlikely]] {
      if (!grow()) return false;
      end = tail_.load(std::memory_order_relaxed);
    }
    ring_[end & mask_] = t;
    tail_.store(end + 1, std::memory_order_release);
    return true;
  }
  // All from `first` on, as next(task) links them, in that order, entered once for all. Returns the
  // first for which there was no memory; null: there was for all.
  template <class Task, class Next>
  [[nodiscard]] Task* push_all(Task* first, Next&& next) noexcept {
    const inside guard(*this);
    std::size_t end = tail_.load(std::memory_order_relaxed);
    for (; first != nullptr; first = next(*first)) {
      if (end - head_.load(std::memory_order_relaxed) > mask_) [[unlikely]] {
        tail_.store(end, std::memory_order_release);
        if (!grow()) return first;
        end = tail_.load(std::memory_order_relaxed);
      }
      ring_[end++ & mask_] = first;
    }
    tail_.store(end, std::memory_order_release);
    return nullptr;
  }
  // To be run before all others.
  void push_front(task* t) {
    if (!try_push_front(t)) [[unlikely]]
      throw std::bad_alloc();
  }
  [[nodiscard]] bool try_push_front(task* t) noexcept {
    const inside guard(*this);
    if (size() > mask_ && !grow()) [[unlikely]]
      return false;
    const std::size_t h = head_.load(std::memory_order_relaxed) - 1;
    ring_[h & mask_] = t;
    head_.store(h, std::memory_order_relaxed);
    return true;
  }
  // So many more will find room. False: there is no memory for them.
  [[nodiscard]] bool try_reserve(std::size_t more) noexcept {
    while (size() + more > mask_ + 1) {
      const inside guard(*this);
      if (!grow()) return false;
    }
    return true;
  }
  // f(), while no thief is in.
  template <class F>
  auto undisturbed(F&& f) noexcept {
    const inside guard(*this);
    return f();
  }
  // Null when empty. If `many` or more are left, calls look_ahead(next, the one after it) while
  // nobody can take them.
  template <class F>
  [[nodiscard]] task* pop(std::size_t many, F&& look_ahead) noexcept {
    task* t = nullptr;
    (void)pop_if(
        t, [](const task&) { return true; }, many, look_ahead);
    return t;
  }
  // The same for a next task for which wanted(task) holds. False, and it stays: there is another.
  template <class Wanted, class F>
  [[nodiscard]] bool pop_if(task*& t, Wanted&& wanted, std::size_t many, F&& look_ahead) noexcept {
    if (empty()) return true;
    const inside guard(*this);
    const std::size_t h = head_.load(std::memory_order_relaxed);
    const std::size_t left = tail_.load(std::memory_order_relaxed) - h;
    if (left == 0) return true;
    task* const first = ring_[h & mask_];
    if (!wanted(*first)) return false;
    t = first;
    head_.store(h + 1, std::memory_order_relaxed);
    if (left > many) look_ahead(ring_[(h + 1) & mask_], ring_[(h + 2) & mask_]);
    return true;
  }
  [[nodiscard]] task* pop() noexcept {
    return pop(SIZE_MAX, [](const task*, const task*) {});
  }
  // The next task, and t goes behind all others; null, and t stays out, where there is none for
  // which wanted(task) holds, or a thief wants in. Not null: no thief comes in before
  // end_rotation(), so t may be a stack that its caller is still on.
  template <class Wanted, class F>
  [[nodiscard]] task* begin_rotation(task* t, Wanted&& wanted, std::size_t many,
                                     F&& look_ahead) noexcept {
    if (empty() || !may_enter()) return nullptr;
    const std::size_t h = head_.load(std::memory_order_relaxed);
    const std::size_t end = tail_.load(std::memory_order_relaxed);
    task* const first = end != h ? ring_[h & mask_] : nullptr;
    if (first == nullptr || !wanted(*first)) {
      leave();
      return nullptr;
    }
    ring_[end & mask_] = t;  // if the ring is full, where the first was
    tail_.store(end + 1, std::memory_order_release);
    head_.store(h + 1, std::memory_order_relaxed);
    if (end - h > many) look_ahead(ring_[(h + 1) & mask_], ring_[(h + 2) & mask_]);
    return first;
  }
  // Harmless when none has begun.
  void end_rotation() noexcept { leave(); }
  // Whether t is the next; a thief may still take it.
  [[nodiscard]] bool is_front(const task* t) const noexcept {
    return !empty() && ring_[head_.load(std::memory_order_relaxed) & mask_] == t;
  }
  // Takes t if it is the next.
  [[nodiscard]] bool take_front(const task* t) noexcept {
    if (empty()) return false;
    const inside guard(*this);
    const std::size_t h = head_.load(std::memory_order_relaxed);
    if (tail_.load(std::memory_order_relaxed) == h || ring_[h & mask_] != t) return false;
    head_.store(h + 1, std::memory_order_relaxed);
    return true;
  }

  // ---- anybody; exact for the owner ----

  // Acquire: who sees that something is there sees, after a heavy fence, what led to it.
  [[nodiscard]] std::size_t size() const noexcept {
    return tail_.load(std::memory_order_acquire) - head_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] bool empty() const noexcept { return size() == 0; }

  // ---- for people ----

  // Out of a copy of a queue that others use: `read(to, from, bytes)` is false where nothing can be
  // read. What it finds may be out of date.
  template <class Read>
  std::size_t peek(task** to, std::size_t max, Read read) const {
    const std::size_t h = head_.load(std::memory_order_relaxed);
    std::size_t n = size() < max ? size() : max;
    if (n > mask_ + 1) n = 0;
    const std::size_t first = mask_ + 1 - (h & mask_);
    const std::size_t before_end = n < first ? n : first;
    if (!read(to, ring_ + (h & mask_), before_end * sizeof(task*))) return 0;
    if (n == before_end) return n;
    return read(to + before_end, ring_, (n - before_end) * sizeof(task*)) ? n : before_end;
  }

  // ---- thieves ----

  // Takes the older half, rounded up, at most `max`; returns how many.
  std::size_t take_half(task** taken, std::size_t max) noexcept {
    std::size_t n = 0;
    as_thief([&] {
      const std::size_t half = (size() + 1) / 2;
      n = take_oldest(taken, half < max ? half : max);
    });
    return n;
  }
  // Calls f() while the owner is out. Not when another thief is at it, when the owner does not come
  // out soon, and where there are no asymmetric fences.
  template <class F>
  void as_thief(F&& f) noexcept {
    if (!asymmetric_fences::available()) return;
    // Acquire: after the thief before us. Partner: the release below.
    if (wanted_.exchange(1, std::memory_order_acquire) != 0) return;
    // Store wanted_, then load inside_; the owner the other way round with light(). One of us sees
    // the other.
    asymmetric_fences::heavy();
    if (owner_is_out()) f();
    // The owner sees what we left. Partner: wait_for_thief().
    wanted_.store(0, std::memory_order_release);
  }
  // Within as_thief().
  std::size_t take_oldest(task** taken, std::size_t max) noexcept {
    const std::size_t h = head_.load(std::memory_order_relaxed);
    std::size_t n = tail_.load(std::memory_order_relaxed) - h;
    n = n < max ? n : max;
    for (std::size_t i = 0; i < n; ++i) taken[i] = ring_[(h + i) & mask_];
    head_.store(h + n, std::memory_order_relaxed);
    return n;
  }

 private:
  void enter() noexcept {
    if (!announce()) [[unlikely]]
      wait_for_thief();
  }
  [[nodiscard]] bool may_enter() noexcept {
    if (announce()) [[likely]]
      return true;
    leave();
    return false;
  }
  // False: a thief wants in.
  [[nodiscard]] bool announce() noexcept {
    inside_.store(1, std::memory_order_relaxed);
    // Partner: the heavy fence in take_half().
    asymmetric_fences::light();
    // Acquire: after a thief that has left. Partner: the release in take_half().
    return wanted_.load(std::memory_order_acquire) == 0;
  }
  // Release: a thief that sees us out sees what we did. Partner: owner_is_out().
  void leave() noexcept { inside_.store(0, std::memory_order_release); }
  struct inside {
    ready_queue& q;
    explicit inside(ready_queue& queue) noexcept : q(queue) { q.enter(); }
    ~inside() { q.leave(); }
    inside(const inside&) = delete;
    inside& operator=(const inside&) = delete;
  };

  void wait_for_thief() noexcept;
  bool owner_is_out() const noexcept;

  // False: there is no memory for it. Asks the kernel itself: who wakes a thread may be a handler,
  // and have interrupted malloc().
  [[nodiscard, gnu::cold]] bool grow() noexcept;
  void give_ring() noexcept;

  static constexpr std::size_t few = 64;
  load_store<std::size_t> head_{0};
  load_store<std::size_t> tail_{0};
  std::size_t mask_ = few - 1;
  std::unique_ptr<task*[]> first_ring_ =
      std::make_unique<task*[]>(few);  // kept: free() as malloc()
  task** ring_ = first_ring_.get();
  load_store<int> inside_{0};   // the owner is
  std::atomic<int> wanted_{0};  // a thief wants in; the owner only loads it
};

}  // namespace strata::detail
