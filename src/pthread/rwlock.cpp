// SPDX-License-Identifier: Apache-2.0
// Readers come first, as with kernel threads: a thread that has the lock to read may take it again
// while a writer waits. Of the kind PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP, writers do.
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "os/clock.hpp"
#include "pthread/wait.hpp"
#include "strata/detail/join.hpp"
#include "threads/waiter.hpp"

namespace strata::detail::posix {
namespace {

// In place of what the C library keeps in a pthread_rwlock_t, up to its kind.
struct rwlock_state {
  std::atomic<std::uint32_t> word;
  // Its address is where readers wait. Where processes share the lock nobody does, and it is when a
  // writer that waits has looked last, in milliseconds of the monotonic clock.
  std::atomic<std::uint32_t> last_look_ms;
  std::atomic<const void*> writer;  // who holds it to write
};

constexpr std::uint32_t has_writer = 1U << 31;
constexpr std::uint32_t writers_wait = 1U << 30;
constexpr std::uint32_t readers_wait = 1U << 29;
constexpr std::uint32_t marks = writers_wait | readers_wait;
// A writer waits that was woken in vain; the next one that comes takes it back.
constexpr std::uint32_t hungry = 1U << 28;
constexpr std::uint32_t readers = hungry - 1;

// A writer of several processes that has not looked for so long holds no readers back: its process
// may have ended. One that waits looks every 2 ms, unless its worker is busy.
constexpr std::uint32_t writer_is_gone_ms = 250;
// By so much another one's time may be later than ours: it has looked since we have.
constexpr std::uint32_t lead_ms_max = 10'000;
std::uint32_t now_ms() noexcept { return static_cast<std::uint32_t>(os::now_ns() / 1'000'000); }

class view {
 public:
  explicit view(pthread_rwlock_t* l) noexcept : raw_(l), s_(*reinterpret_cast<rwlock_state*>(l)) {
    static_assert(sizeof(rwlock_state) <= offsetof(__pthread_rwlock_arch_t, __flags));
  }

  // To read: 0, EBUSY, EDEADLK, EAGAIN.
  int try_read() noexcept { return try_read_unless(keeps_readers_out()); }
  // By one that was woken: a writer that has come since waits for it, as for those that were
  // quicker. Else all that were woken might wait again, and again, with one in at a time.
  int try_read_again() noexcept { return try_read_unless(has_writer); }
  int try_read_unless(std::uint32_t kept_out_by) noexcept {
    std::uint32_t w = s_.word.load(std::memory_order_relaxed);
    while (lets_readers_in(w, kept_out_by)) {
      if ((w & readers) == readers) return EAGAIN;
      // The mark of a writer that is gone goes with it.
      const std::uint32_t next = (is_shared() ? w & ~writers_wait : w) + 1;
      if (s_.word.compare_exchange_weak(w, next, std::memory_order_acquire,
                                        std::memory_order_relaxed))
        return 0;
    }
    return s_.writer.load(std::memory_order_relaxed) == myself() ? EDEADLK : EBUSY;
  }
  int try_write() noexcept { return try_write_with(0); }
  // By one that was woken, perhaps in place of others.
  int try_write_again() noexcept { return try_write_with(marks); }
  int try_write_with(std::uint32_t more) noexcept {
    std::uint32_t w = s_.word.load(std::memory_order_relaxed);
    while ((w & (has_writer | readers)) == 0) {
      if (s_.word.compare_exchange_weak(w, w | has_writer | more, std::memory_order_acquire,
                                        std::memory_order_relaxed)) {
        s_.writer.store(myself(), std::memory_order_relaxed);
        return 0;
      }
    }
    return s_.writer.load(std::memory_order_relaxed) == myself() ? EDEADLK : EBUSY;
  }

  int read(const deadline& until) {
    return lock<&view::try_read, &view::try_read_again>(until, "read-write lock, to read",
                                                        &s_.last_look_ms, &reader_must_wait,
                                                        &reader_must_wait, nullptr);
  }
  int write(const deadline& until) {
    // Whichever way we leave without it, also with our runtime: readers may be held back on our
    // account alone.
    struct attempt {
      view& v;
      bool succeeded = false;
      ~attempt() {
        if (!succeeded) writer_gives_up(&v);
      }
    } mine{*this};
    let_hungry_first();
    const int error = lock<&view::try_write, &view::try_write_again>(
        until, "read-write lock, to write", &s_.word, &writer_must_wait, &writer_must_wait_again,
        &writer_gives_up);
    mine.succeeded = error == 0;
    return error;
  }

  int unlock() noexcept {
    std::uint32_t w = s_.word.load(std::memory_order_relaxed);
    if ((w & has_writer) != 0) {
      if (s_.writer.load(std::memory_order_relaxed) != myself()) return EPERM;
      s_.writer.store(nullptr, std::memory_order_relaxed);
      const bool may_be_parked_for = !is_shared();
      const bool writers_first = prefers_writers();
      // The last access, with the marks at once: whoever locks it next may end it.
      const std::uint32_t before =
          s_.word.fetch_and(~(has_writer | marks), std::memory_order_release);
      if (may_be_parked_for) wake_next(before, writers_first);
      return 0;
    }
    const bool writers_first = prefers_writers();
    bool hands_over = false;
    std::uint32_t next = 0;
    do {
      if ((w & readers) == 0) return EINVAL;
      // Of several processes the mark stays until a writer that has had the lock unlocks it: one
      // that waits looks late, and readers that were let in meanwhile would come again and again.
      hands_over = (w & readers) == 1 && (w & writers_wait) != 0 && !is_shared();
      next = (w - 1) & ~(hands_over ? marks : 0);
    } while (!s_.word.compare_exchange_weak(w, next, std::memory_order_release,
                                            std::memory_order_relaxed));
    if (hands_over) wake_next(w, writers_first);
    return 0;
  }

  [[nodiscard]] bool is_awaited() const noexcept {
    return detail::is_awaited(&s_.word) || detail::is_awaited(&s_.last_look_ms);
  }

 private:
  [[nodiscard]] bool is_shared() const noexcept { return raw_->__data.__shared != 0; }
  [[nodiscard]] const void* myself() const noexcept { return is_shared() ? me_anywhere() : me(); }
  [[nodiscard]] bool prefers_writers() const noexcept {
    return raw_->__data.__flags == PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP;
  }
  [[nodiscard]] std::uint32_t keeps_readers_out() const noexcept {
    return prefers_writers() ? has_writer | writers_wait : has_writer;
  }

  // ---- where processes share it ----
  // Relaxed, both: who finds an old time lets a reader in early, and the writer says it again.
  void keep_readers_out() noexcept {
    s_.last_look_ms.store(now_ms(), std::memory_order_relaxed);
    (void)mark(s_.word, has_writer | readers, writers_wait);
  }
  [[nodiscard]] bool is_writer_gone() const noexcept {
    const std::uint32_t passed = now_ms() - s_.last_look_ms.load(std::memory_order_relaxed);
    return is_shared() && passed > writer_is_gone_ms && passed < 0U - lead_ms_max;
  }
  [[nodiscard]] bool lets_readers_in(std::uint32_t w, std::uint32_t kept_out_by) const noexcept {
    const std::uint32_t keeps = w & kept_out_by;
    return keeps == 0 || (keeps == writers_wait && is_writer_gone());
  }

  // As shared_timed_mutex::let_hungry_first().
  void let_hungry_first() noexcept {
    if ((s_.word.load(std::memory_order_relaxed) & hungry) == 0) [[likely]]
      return;
    s_.word.fetch_and(~hungry, std::memory_order_relaxed);
    yield_stack();
  }

  // As the C library has it, what is wrong with the time is told also where there is no need to
  // wait.
  template <int (view::*Try)() noexcept, int (view::*TryAgain)() noexcept>
  int lock(const deadline& until, const char* what, const void* address, bool (*must_wait)(void*),
           bool (*must_wait_again)(void*), void (*forgotten)(void*) noexcept) {
    if (const int error = until.check()) return error;
    int answer = (this->*Try)();
    if (answer != EBUSY) return answer;
    const kept_errno keep;
    polled_wait between("read-write lock of several processes");
    while (is_shared() && answer == EBUSY) {
      if (until.has_passed()) return ETIMEDOUT;
      if constexpr (Try == &view::try_write) {
        if (prefers_writers()) keep_readers_out();
      }
      (void)between.pause(until, false);
      answer = (this->*Try)();
    }
    // From then on it may answer for others, whose marks went when it was woken.
    bool was_woken = false;
    while (answer == EBUSY) {
      const unparked why =
          park_or_give_way(until.bound({.what = what,
                                        .address = address,
                                        .still = was_woken ? must_wait_again : must_wait,
                                        .forgotten = forgotten,
                                        .argument = this}));
      was_woken = was_woken || why == unparked::woken;
      answer = was_woken ? (this->*TryAgain)() : (this->*Try)();
      if (answer == EBUSY && why == unparked::timed_out && until.has_passed()) return ETIMEDOUT;
    }
    return answer;
  }

  // With the mark set, so that who unlocks looks for us. Asked with the queue locked.
  static bool mark(std::atomic<std::uint32_t>& word, std::uint32_t busy, std::uint32_t mark) {
    std::uint32_t w = word.load(std::memory_order_relaxed);
    while ((w & busy) != 0) {
      if ((w & mark) == mark || word.compare_exchange_weak(w, w | mark, std::memory_order_relaxed))
        return true;
    }
    return false;
  }
  static bool writer_must_wait(void* self) {
    return mark(static_cast<view*>(self)->s_.word, has_writer | readers, writers_wait);
  }
  static bool writer_must_wait_again(void* self) {
    return mark(static_cast<view*>(self)->s_.word, has_writer | readers, writers_wait | hungry);
  }
  static bool reader_must_wait(void* self) {
    auto& v = *static_cast<view*>(self);
    return mark(v.s_.word, v.keeps_readers_out(), readers_wait);
  }

  static void writer_gives_up(void* self) noexcept {
    auto& v = *static_cast<view*>(self);
    if ((v.s_.word.load(std::memory_order_relaxed) & writers_wait) != 0) v.leave_unlocked();
  }
  static void no_writer_waits(void* word) noexcept {
    auto& w = *static_cast<std::atomic<std::uint32_t>*>(word);
    w.fetch_and(~writers_wait, std::memory_order_relaxed);
  }
  // By a writer that was not woken for it. Where others are parked the mark is theirs. Else it
  // goes, and readers look again; a writer that is on its way marks again if need be. Writers of
  // several processes do so when they look next, up to 2 ms later, and readers may come in until
  // then. Without that readers would be held back for nobody, until the mark is too old.
  void leave_unlocked() noexcept {
    if (is_shared()) return no_writer_waits(&s_.word);
    unless_awaited(&s_.word, &no_writer_waits, &s_.word);
    if ((s_.word.load(std::memory_order_relaxed) & writers_wait) == 0)
      unpark(&s_.last_look_ms, UINT32_MAX);
  }
  // With the marks taken back that there were `before`: one writer, and the readers unless that is
  // to come first. It answers for all whose marks went: those are there again when it has the lock,
  // and it hands on what it cannot have: see leave_unlocked(). The lock may be gone: by its address
  // only. Not where processes share it, since nobody parks.
  void wake_next(std::uint32_t before, bool writers_first) const noexcept {
    if ((before & marks) == 0) return;
    if (writers_first) {
      if ((before & writers_wait) != 0 && unpark(&s_.word, 1) != 0) return;
      unpark(&s_.last_look_ms, UINT32_MAX);
    } else {
      if ((before & readers_wait) != 0) unpark(&s_.last_look_ms, UINT32_MAX);
      if ((before & writers_wait) != 0) unpark(&s_.word, 1);
    }
  }

  pthread_rwlock_t* raw_;
  rwlock_state& s_;
};

// What trying tells that locking tells as a deadlock.
int tried(int answer) { return answer == EDEADLK ? EBUSY : answer; }

}  // namespace
}  // namespace strata::detail::posix

using namespace strata::detail;
using namespace strata::detail::posix;

extern "C" {

int strata_pthread_rwlock_init(pthread_rwlock_t* lock, const pthread_rwlockattr_t* attributes) {
  int kind = PTHREAD_RWLOCK_DEFAULT_NP;
  int shared = PTHREAD_PROCESS_PRIVATE;
  if (attributes != nullptr) {
    if (const int error = pthread_rwlockattr_getpshared(attributes, &shared)) return error;
    pthread_rwlockattr_getkind_np(attributes, &kind);
  }
  std::memset(lock, 0, sizeof *lock);
  lock->__data.__shared = shared == PTHREAD_PROCESS_SHARED ? 1 : 0;
  lock->__data.__flags = static_cast<decltype(lock->__data.__flags)>(kind);
  return 0;
}

int strata_pthread_rwlock_destroy(pthread_rwlock_t* lock) {
  return view(lock).is_awaited() ? EBUSY : 0;
}

int strata_pthread_rwlock_rdlock(pthread_rwlock_t* lock) { return view(lock).read({}); }
int strata_pthread_rwlock_tryrdlock(pthread_rwlock_t* lock) { return tried(view(lock).try_read()); }
int strata_pthread_rwlock_timedrdlock(pthread_rwlock_t* lock, const timespec* until) {
  return view(lock).read({CLOCK_REALTIME, until});
}
int strata_pthread_rwlock_clockrdlock(pthread_rwlock_t* lock, clockid_t clock,
                                      const timespec* until) {
  return view(lock).read({clock, until});
}

int strata_pthread_rwlock_wrlock(pthread_rwlock_t* lock) { return view(lock).write({}); }
int strata_pthread_rwlock_trywrlock(pthread_rwlock_t* lock) {
  return tried(view(lock).try_write());
}
int strata_pthread_rwlock_timedwrlock(pthread_rwlock_t* lock, const timespec* until) {
  return view(lock).write({CLOCK_REALTIME, until});
}
int strata_pthread_rwlock_clockwrlock(pthread_rwlock_t* lock, clockid_t clock,
                                      const timespec* until) {
  return view(lock).write({clock, until});
}

int strata_pthread_rwlock_unlock(pthread_rwlock_t* lock) { return view(lock).unlock(); }
}
