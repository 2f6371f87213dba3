// SPDX-License-Identifier: Apache-2.0
// Readers and writers: who gets in, and who answers for the marks of those who wait.
#include <thread>

#include "os/clock.hpp"
#include "strata/detail/join.hpp"
#include "strata/mutex.hpp"

namespace strata {

// How often somebody looks again whether another, who is at it, is through.
constexpr int spins_max = 100;

#if defined(STRATA_DEBUG_CHECKS)
shared_timed_mutex::~shared_timed_mutex() {
  detail::check_end("shared mutex", this,
                    (state_.load(std::memory_order_relaxed) & (writer | readers)) != 0, &state_,
                    readers_at());
}
#endif

// What the state says then, apart from that: `marks`.
bool shared_timed_mutex::try_write(std::uint32_t marks) noexcept {
  std::uint32_t s = state_.load(std::memory_order_relaxed);
  while ((s & (writer | readers)) == 0) {
    if (state_.compare_exchange_weak(s, s | writer | marks, std::memory_order_acquire,
                                     std::memory_order_relaxed)) {
      owner_.take();
      return true;
    }
  }
  return false;
}

bool shared_timed_mutex::try_lock() noexcept { return try_write(0); }

bool shared_timed_mutex::try_lock_shared() noexcept {
  std::uint32_t s = state_.load(std::memory_order_relaxed);
  while ((s & (writer | writers_wait)) == 0) {
    if (state_.compare_exchange_weak(s, s + 1, std::memory_order_acquire,
                                     std::memory_order_relaxed))
      return true;
  }
  return false;
}

// Sets `mark` if there is one of the `reasons`; whether there is.
static bool mark_while(std::atomic<std::uint32_t>& state, std::uint32_t reasons,
                       std::uint32_t mark) noexcept {
  std::uint32_t s = state.load(std::memory_order_relaxed);
  while ((s & reasons) != 0) {
    if ((s & mark) == mark || state.compare_exchange_weak(s, s | mark, std::memory_order_relaxed))
      return true;
  }
  return false;
}

bool shared_timed_mutex::writer_must_wait(void* self) {
  return mark_while(static_cast<shared_timed_mutex*>(self)->state_, writer | readers, writers_wait);
}

bool shared_timed_mutex::writer_must_wait_again(void* self) {
  return mark_while(static_cast<shared_timed_mutex*>(self)->state_, writer | readers,
                    writers_wait | hungry);
}

void shared_timed_mutex::writer_gives_up(void* self) noexcept {
  auto& m = *static_cast<shared_timed_mutex*>(self);
  if ((m.state_.load(std::memory_order_relaxed) & writers_wait) != 0) m.forget_writers();
}

bool shared_timed_mutex::reader_must_wait(void* self) {
  return mark_while(static_cast<shared_timed_mutex*>(self)->state_, writer | writers_wait,
                    readers_wait);
}

// Where a writer was woken in vain others have their turn: one that locks again at once what it has
// unlocked would else keep all writers out that share its worker.
void shared_timed_mutex::let_hungry_first() noexcept {
  if ((state_.load(std::memory_order_relaxed) & hungry) == 0) [[likely]]
    return;
  state_.fetch_and(~hungry, std::memory_order_relaxed);
  detail::yield_stack();
}

bool shared_timed_mutex::lock_until(std::int64_t deadline_ns) {
  let_hungry_first();
  if (try_lock()) return true;
  // Whichever way we leave without it, also with our runtime: readers may be held back on our
  // account alone.
  struct attempt {
    shared_timed_mutex& m;
    bool succeeded = false;
    ~attempt() {
      if (!succeeded) writer_gives_up(&m);
    }
  } mine{*this};
  bool in_vain = false;
  do {
    const auto why = detail::park({.what = "shared mutex, to write",
                                   .address = &state_,
                                   .still = in_vain ? &writer_must_wait_again : &writer_must_wait,
                                   .forgotten = &writer_gives_up,
                                   .argument = this,
                                   .deadline_ns = deadline_ns});
    if (why == detail::unparked::timed_out) return false;
    in_vain = true;
    // Others may wait: who has woken us has taken their mark back.
  } while (!try_write(writers_wait));
  mine.succeeded = true;
  return true;
}

bool shared_timed_mutex::lock_shared_until(std::int64_t deadline_ns) {
  while (!try_lock_shared()) {
    const auto why = detail::park({.what = "shared mutex, to read",
                                   .address = readers_at(),
                                   .still = &reader_must_wait,
                                   .argument = this,
                                   .deadline_ns = deadline_ns});
    if (why == detail::unparked::timed_out) return false;
    // Whoever wakes a reader has counted it: it can only be an unlock() of this lock.
    if (why == detail::unparked::woken) return true;
  }
  return true;
}

void shared_timed_mutex::no_writer_waits(void* self) {
  static_cast<shared_timed_mutex*>(self)->state_.fetch_and(~writers_wait,
                                                           std::memory_order_relaxed);
}

void shared_timed_mutex::unlock() noexcept {
  owner_.leave("shared mutex (to write)", this);
  const void* const writers_at = &state_;
  bool mark_is_true = false;
  std::uint32_t s = state_.load(std::memory_order_relaxed);
  for (;;) {
    const bool admit = (s & readers_wait) != 0;
    if (admit && (s & writers_wait) != 0 && !mark_is_true) {
      // No reader gets in with a mark that no writer answers for: see wake_a_writer().
      detail::unless_awaited(writers_at, &no_writer_waits, this);
      mark_is_true = true;
      s = state_.load(std::memory_order_relaxed);
      continue;
    }
    if (admit) {
      if (try_admit_readers(s, s & ~(writer | readers_wait))) return;
      continue;
    }
    if (!state_.compare_exchange_weak(s, s & ~(writer | writers_wait), std::memory_order_acq_rel,
                                      std::memory_order_relaxed))
      continue;
    // One, which marks for all that wait: it does when it takes the lock, and when it waits again.
    if ((s & writers_wait) != 0) detail::unpark(writers_at, 1);
    return;
  }
}

void shared_timed_mutex::unlock_shared() noexcept {
  // Who has let us in may still be counting: with us gone, the last of us could end the lock under
  // its hands. It takes some instructions, and is not interrupted. Partner: try_admit_readers().
  for (int i = 0; (state_.load(std::memory_order_relaxed) & readers) >= admitting; ++i)
    i < spins_max ? os::spin_pause() : std::this_thread::yield();
  const std::uint32_t before = state_.fetch_sub(1, std::memory_order_acq_rel);
  detail::check_use((before & readers) != 0, "shared mutex (to read)", this,
                    "is unlocked, which nobody holds",
                    "unlock it once for each time that it was locked");
  if ((before & readers) == 1 && (before & writers_wait) != 0) wake_a_writer();
}

// The state becomes `next`, unless it is no longer what was `seen`, and all readers that wait have
// the lock, before anybody else can. `admitting` comes on top, so that it cannot become free while
// they are counted; nor do they leave until then: see unlock_shared().
bool shared_timed_mutex::try_admit_readers(std::uint32_t& seen, std::uint32_t next) noexcept {
  const detail::uninterrupted guard;
  if (!state_.compare_exchange_weak(seen, next + admitting, std::memory_order_acq_rel,
                                    std::memory_order_relaxed))
    return false;
  const unsigned n = detail::unpark(readers_at(), UINT32_MAX);
  const std::uint32_t less = admitting - n;
  const std::uint32_t before = state_.fetch_sub(less, std::memory_order_acq_rel);
  if ((before & readers) == less && (before & writers_wait) != 0) wake_a_writer();
  return true;
}

// It is free, and readers are held back until a writer has had it: the mark stays. Nothing but the
// address is used: another writer may have been quicker, and may have ended the lock. If nobody
// waits there, nothing has to be done either, by this invariant: while readers have a lock that is
// marked, some writer is parked, or was woken or gave up, and has yet to look at the state. So it
// is when a writer marks it, which is then queued; and when a writer lets readers in: see unlock().
void shared_timed_mutex::wake_a_writer() noexcept { detail::unpark(&state_, 1); }

// By a writer that leaves without the lock, and without having been woken for it. Where others are
// parked the mark is theirs, and who leaves the lock wakes one of them; one that was woken, and is
// on its way, marks again if it has to.
void shared_timed_mutex::forget_writers() noexcept {
  detail::unless_awaited(&state_, &no_writer_waits, this);
  std::uint32_t s = state_.load(std::memory_order_relaxed);
  // With a writer in it, or one that waits, the readers are its own to let in.
  while ((s & readers_wait) != 0 && (s & (writer | writers_wait)) == 0) {
    if (try_admit_readers(s, s & ~readers_wait)) return;
  }
}

}  // namespace strata
