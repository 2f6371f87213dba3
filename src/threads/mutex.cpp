// SPDX-License-Identifier: Apache-2.0
#include "strata/mutex.hpp"

#include "os/clock.hpp"

namespace strata {

namespace detail {

bool word_lock::is_contended(void* self) {
  return static_cast<word_lock*>(self)->state_.load(std::memory_order_relaxed) == contended;
}

bool word_lock::lock_slowly(std::int64_t deadline_ns) {
  // Its holder may be running on another core, and about to leave.
  if (const worker& w = this_worker(); w.owner == nullptr || w.has_neighbours) {
    for (int i = 0; i < 40; ++i) {
      os::spin_pause();
      if (state_.load(std::memory_order_relaxed) == free && try_lock()) return true;
    }
  }
  while (state_.exchange(contended, std::memory_order_acquire) != free) {
    const unparked why = park({.what = "mutex",
                               .address = this,
                               .still = &is_contended,
                               .argument = this,
                               .deadline_ns = deadline_ns});
    if (why == unparked::timed_out) return false;
  }
  return true;
}

// `this` may be gone: by its address only.
void word_lock::wake_next() noexcept { unpark(this, 1); }

}  // namespace detail

bool shared_timed_mutex::try_lock() noexcept {
  std::uint32_t s = state_.load(std::memory_order_relaxed);
  while ((s & (writer | readers)) == 0) {
    if (state_.compare_exchange_weak(s, s | writer, std::memory_order_acquire,
                                     std::memory_order_relaxed))
      return true;
  }
  return false;
}

bool shared_timed_mutex::try_lock_shared() noexcept {
  std::uint32_t s = state_.load(std::memory_order_relaxed);
  while ((s & (writer | writers_wait)) == 0) {
    if (state_.compare_exchange_weak(s, s + 1, std::memory_order_acquire,
                                     std::memory_order_relaxed))
      return true;
  }
  return false;
}

bool shared_timed_mutex::writer_must_wait(void* self) {
  auto& state = static_cast<shared_timed_mutex*>(self)->state_;
  std::uint32_t s = state.load(std::memory_order_relaxed);
  while ((s & (writer | readers)) != 0) {
    if ((s & writers_wait) != 0 ||
        state.compare_exchange_weak(s, s | writers_wait, std::memory_order_relaxed))
      return true;
  }
  return false;
}

bool shared_timed_mutex::reader_must_wait(void* self) {
  auto& state = static_cast<shared_timed_mutex*>(self)->state_;
  std::uint32_t s = state.load(std::memory_order_relaxed);
  while ((s & (writer | writers_wait)) != 0) {
    if ((s & readers_wait) != 0 ||
        state.compare_exchange_weak(s, s | readers_wait, std::memory_order_relaxed))
      return true;
  }
  return false;
}

bool shared_timed_mutex::lock_until(std::int64_t deadline_ns) {
  while (!try_lock()) {
    const auto why = detail::park({.what = "shared mutex, to write",
                                   .address = &state_,
                                   .still = &writer_must_wait,
                                   .argument = this,
                                   .deadline_ns = deadline_ns});
    if (why == detail::unparked::timed_out) {
      // Readers may be held back on our account alone.
      if ((state_.load(std::memory_order_relaxed) & writers_wait) != 0) hand_over();
      return false;
    }
  }
  return true;
}

bool shared_timed_mutex::lock_shared_until(std::int64_t deadline_ns) {
  while (!try_lock_shared()) {
    const auto why = detail::park({.what = "shared mutex, to read",
                                   .address = &readers_,
                                   .still = &reader_must_wait,
                                   .argument = this,
                                   .deadline_ns = deadline_ns});
    if (why == detail::unparked::timed_out) return false;
  }
  return true;
}

void shared_timed_mutex::unlock() noexcept {
  const std::uint32_t before = state_.fetch_and(~writer, std::memory_order_release);
  if ((before & (writers_wait | readers_wait)) != 0) hand_over();
}

void shared_timed_mutex::unlock_shared() noexcept {
  const std::uint32_t before = state_.fetch_sub(1, std::memory_order_release);
  if ((before & readers) == 1 && (before & writers_wait) != 0) hand_over();
}

bool shared_timed_mutex::is_exclusive() const noexcept {
  return (state_.load(std::memory_order_relaxed) & writer) != 0;
}

// Both marks go, and everybody who is meant looks again, and marks again if need be: one writer and
// all readers. Which of them is first is left to the scheduler, so that neither side starves.
void shared_timed_mutex::hand_over() noexcept {
  const void* const writers_at = &state_;
  const void* const readers_at = &readers_;
  state_.fetch_and(~(writers_wait | readers_wait), std::memory_order_relaxed);
  detail::unpark(writers_at, UINT32_MAX);
  detail::unpark(readers_at, UINT32_MAX);
}

bool once_flag::in_progress(void* self) {
  return static_cast<once_flag*>(self)->state_.load(std::memory_order_relaxed) == running;
}

bool once_flag::begin() {
  for (;;) {
    std::uint32_t seen = nothing;
    if (state_.compare_exchange_strong(seen, running, std::memory_order_acquire)) return true;
    if (seen == done_) return false;
    detail::park({.what = "call_once", .address = this, .still = &in_progress, .argument = this});
  }
}

void once_flag::end(bool done) noexcept {
  state_.store(done ? done_ : nothing, std::memory_order_release);
  detail::unpark(this, UINT32_MAX);
}

}  // namespace strata
