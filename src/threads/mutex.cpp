// SPDX-License-Identifier: Apache-2.0
#include "strata/mutex.hpp"

#include <system_error>
#include <thread>

#include "os/clock.hpp"

namespace strata {

namespace detail {

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
      // One with a deadline may give up, and could then have been handed it: it never insists.
      const bool insists = in_vain >= patience && deadline_ns == parking::never;
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

}  // namespace detail

void recursive_mutex::refuse_depth() {
  throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again),
                          "strata::recursive_mutex: locked too often by one thread");
}

// How often somebody looks again whether another, who is at it, is through.
constexpr int spins_max = 100;

#if defined(STRATA_DEBUG_CHECKS)
shared_timed_mutex::~shared_timed_mutex() {
  detail::check_end("shared mutex", this,
                    (state_.load(std::memory_order_relaxed) & (writer | readers)) != 0, &state_,
                    readers_at());
}
#endif

bool shared_timed_mutex::try_lock() noexcept {
  std::uint32_t s = state_.load(std::memory_order_relaxed);
  while ((s & (writer | readers)) == 0) {
    if (state_.compare_exchange_weak(s, s | writer, std::memory_order_acquire,
                                     std::memory_order_relaxed)) {
      owner_.take();
      return true;
    }
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

// Sets `mark` if there is one of the `reasons`; whether there is.
static bool mark_while(std::atomic<std::uint32_t>& state, std::uint32_t reasons,
                       std::uint32_t mark) noexcept {
  std::uint32_t s = state.load(std::memory_order_relaxed);
  while ((s & reasons) != 0) {
    if ((s & mark) != 0 || state.compare_exchange_weak(s, s | mark, std::memory_order_relaxed))
      return true;
  }
  return false;
}

bool shared_timed_mutex::writer_must_wait(void* self) {
  return mark_while(static_cast<shared_timed_mutex*>(self)->state_, writer | readers, writers_wait);
}

bool shared_timed_mutex::reader_must_wait(void* self) {
  return mark_while(static_cast<shared_timed_mutex*>(self)->state_, writer | writers_wait,
                    readers_wait);
}

bool shared_timed_mutex::lock_until(std::int64_t deadline_ns) {
  if (try_lock()) return true;
  // Whichever way we leave without it: readers may be held back on our account alone.
  struct attempt {
    shared_timed_mutex& m;
    bool succeeded = false;
    ~attempt() {
      if (!succeeded && (m.state_.load(std::memory_order_relaxed) & writers_wait) != 0)
        m.forget_writers();
    }
  } mine{*this};
  do {
    const auto why = detail::park({.what = "shared mutex, to write",
                                   .address = &state_,
                                   .still = &writer_must_wait,
                                   .argument = this,
                                   .deadline_ns = deadline_ns});
    if (why == detail::unparked::timed_out) return false;
  } while (!try_lock());
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
    if ((s & writers_wait) != 0) detail::unpark(writers_at, UINT32_MAX);
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

// Takes the mark of waiting writers back. Those who wait all the same look again, and mark again.
void shared_timed_mutex::forget_writers() noexcept {
  const void* const writers_at = &state_;
  std::uint32_t s = state_.load(std::memory_order_relaxed);
  for (;;) {
    // With a writer in it, the readers are its own to let in.
    const bool admit = (s & readers_wait) != 0 && (s & writer) == 0;
    const std::uint32_t next = s & ~writers_wait;
    if (admit) {
      if (!try_admit_readers(s, next & ~readers_wait)) continue;
    } else if (!state_.compare_exchange_weak(s, next, std::memory_order_acq_rel,
                                             std::memory_order_relaxed)) {
      continue;
    }
    detail::unpark(writers_at, UINT32_MAX);
    return;
  }
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
