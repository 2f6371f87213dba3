// SPDX-License-Identifier: Apache-2.0
// While a thread polls a descriptor anyway, the one that sleeps in epoll until something comes to
// it is not woken for that: it would find nothing left, and would want the core of whoever polls.
// As long as nobody sleeps that costs no system call.
#pragma once
#include <mutex>

namespace strata::net {

class attendance {
 public:
  // `source` is watched by `epoll` for EPOLLIN, with no data; both live longer. Only this changes
  // how.
  attendance(int epoll, int source) noexcept : epoll_(epoll), source_(source) {}

  // Any thread; as many may attend at once as want to.
  void begin() noexcept;
  // What the last one leaves behind wakes the sleeper. True: there is one.
  bool end() noexcept;
  // True: somebody does, who sees what the caller has published before when it has come to its
  // end().
  [[nodiscard]] bool is_there() noexcept {
    const std::lock_guard lock(mutex_);
    return attendants_ != 0;
  }

  // The sleeper's, one thread's: around its wait, and around whatever it does last before.
  class sleep {
   public:
    explicit sleep(attendance& a) noexcept : attendance_(a) { a.set_asleep(true); }
    ~sleep() { attendance_.set_asleep(false); }
    sleep(const sleep&) = delete;
    sleep& operator=(const sleep&) = delete;

   private:
    attendance& attendance_;
  };

 private:
  void set_asleep(bool is) noexcept;
  // With the mutex.
  void settle() noexcept;

  const int epoll_, source_;
  std::mutex mutex_;
  unsigned attendants_ = 0;
  bool asleep_ = false;
  bool watched_ = true;  // as epoll was told last
};

}  // namespace strata::net
