// SPDX-License-Identifier: Apache-2.0
// Deadlines of those who wait in one runtime. A thread of its own sleeps until the first of them;
// it is started by the first deadline there is, so a program without any has no such thread. In a
// simulation there is none at all: time passes there as the simulation says.
#pragma once
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <thread>

#include "os/futex.hpp"

namespace strata::detail {

class timers {
 public:
  struct entry {
    // Called once on the timers' thread, or by whoever calls fire_due(), with the timers' lock:
    // must be short and must not come back here.
    void (*fire)(entry&) noexcept = nullptr;
    // If there is one it is called before, the same way: a time to come puts it off until then.
    std::int64_t (*put_off)(entry&) noexcept = nullptr;
    bool armed = false;
    std::multimap<std::int64_t, entry*>::iterator where{};
  };

  // A time in place of the monotonic clock's.
  class clock {
   public:
    [[nodiscard]] virtual std::int64_t now_ns() const noexcept = 0;
    // Calls fire_due() when it is that time, not before alarm_at() has returned. Calling it more
    // often is harmless.
    virtual void alarm_at(std::int64_t time_ns) = 0;

   protected:
    ~clock() = default;
  };

  timers() = default;
  ~timers();
  timers(const timers&) = delete;
  timers& operator=(const timers&) = delete;

  // Before anybody else uses them: deadlines are on that clock, which exists as long as these.
  void go_by(clock& c) noexcept { clock_ = &c; }
  // On the clock that deadlines are on. Any thread.
  [[nodiscard]] std::int64_t now_ns() const noexcept;
  // By who keeps such a clock.
  void fire_due();

  // Fires e when it is `deadline_ns` for now_ns(), or soon if that has passed. Any thread.
  void add(entry& e, std::int64_t deadline_ns);
  // Afterwards e has fired or never will.
  void remove(entry& e);
  // Nobody waits for a deadline.
  [[nodiscard]] bool empty() const noexcept { return count_.load(std::memory_order_seq_cst) == 0; }

 private:
  void run();
  // With the lock.
  void fire_until(std::int64_t now_ns) noexcept;

  clock* clock_ = nullptr;  // null: the monotonic one
  // What is written, apart from what whoever asks for the time reads.
  alignas(64) std::mutex mutex_;
  std::multimap<std::int64_t, entry*> entries_;
  std::atomic<std::size_t> count_{0};
  os::futex_word changes_{0};
  // The thread: with the lock, it sleeps until then at most, if it sleeps. A deadline that is
  // removed leaves it: who waits for a later one next, as one who is always woken in time does,
  // wakes nobody. Before it looks for the first time it need not be woken.
  std::int64_t sleeps_until_ns_ = INT64_MIN;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace strata::detail
