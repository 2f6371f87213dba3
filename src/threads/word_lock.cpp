// SPDX-License-Identifier: Apache-2.0
#include "strata/detail/word_lock.hpp"

#include "os/clock.hpp"
#include "strata/detail/worker.hpp"

namespace strata::detail {

// How often a waiter is woken in vain before it insists.
constexpr int patience = 4;
// In pauses of the processor; it doubles up to this, so that they are 31 in all.
constexpr int longest_pause = 16;

bool word_lock::is_contended(void* self) {
  return static_cast<word_lock*>(self)->state_.load(std::memory_order_relaxed) >= contended;
}

bool word_lock::is_starved(void* self) {
  return static_cast<word_lock*>(self)->state_.load(std::memory_order_relaxed) == starved;
}

// Takes it if it is free (others may wait, so it is contended then); else leaves at least `mark`.
bool word_lock::take_or_mark(std::uint32_t mark) noexcept {
  std::uint32_t seen = state_.load(std::memory_order_relaxed);
  for (;;) {
    if (seen != free && seen >= mark) return false;
    if (state_.compare_exchange_weak(seen, seen == free ? contended : mark,
                                     std::memory_order_acquire, std::memory_order_relaxed))
      return seen == free;
  }
}

namespace {

// The calling thread waits for `lock` while this is there, for those who look for circles. park()
// may throw: then it waits no more.
class awaiting {
 public:
  awaiting(const void* lock, bool watched) noexcept : watched_(watched) {
    if (watched_) lock_awaited(lock);
  }
  ~awaiting() {
    if (watched_) lock_no_longer_awaited();
  }
  awaiting(const awaiting&) = delete;
  awaiting& operator=(const awaiting&) = delete;

 private:
  const bool watched_;
};

}  // namespace

bool word_lock::lock_slowly(std::int64_t deadline_ns,
                            std::int64_t (*look_again)(const void*) noexcept,
                            const void* argument) {
  // Its holder may be running on another core, and about to leave. Each look takes the line away
  // from it, so looks become rarer: meanwhile it may lock and unlock many times.
  if (const worker& w = this_worker(); w.owner == nullptr || w.has_neighbours) {
    for (int pauses = 1; pauses <= longest_pause; pauses *= 2) {
      for (int i = 0; i < pauses; ++i) os::spin_pause();
      if (state_.load(std::memory_order_relaxed) == free && try_lock()) return true;
    }
  }
  {
    // Who gives up after a while is no part of a deadlock.
    const awaiting mine(this, watches_locks() && deadline_ns == parking::never);
    for (int in_vain = 0;; ++in_vain) {
      // One with a deadline, too: who gives up has not been handed it, as one of the two is
      // decided.
      const bool insists = in_vain >= patience;
      if (take_or_mark(insists ? starved : contended)) break;
      const unparked why = park({.what = "mutex",
                                 .address = insists ? gate() : this,
                                 .still = insists ? &is_starved : &is_contended,
                                 .argument = this,
                                 .deadline_ns = deadline_ns,
                                 .look_again = look_again,
                                 .look_again_argument = argument});
      if (why == unparked::timed_out) return false;
      if (insists && why == unparked::woken) break;  // it is ours
    }
  }
  if (watches_locks()) lock_taken(this);
  return true;
}

void word_lock::release(void* self) noexcept {
  static_cast<word_lock*>(self)->state_.store(free, std::memory_order_release);
}

// Once the word is free, `this` may be gone: whoever gets it may end it. From then on only its
// address is used.
void word_lock::unlock_slowly() noexcept {
  std::uint32_t seen = state_.load(std::memory_order_relaxed);
  while (seen != starved) {
    if (state_.compare_exchange_weak(seen, free, std::memory_order_release,
                                     std::memory_order_relaxed)) {
      if (seen == contended) unpark(this, 1);
      return;
    }
  }
  // It stays locked and marked, and is the other's. If nobody insists any more it is released with
  // the gate's queue locked, so that whoever is about to insist sees that.
  if (unpark_one_or(gate(), &release, this)) return;
  unpark(this, 1);
}

}  // namespace strata::detail
