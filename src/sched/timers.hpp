// SPDX-License-Identifier: Apache-2.0
// Deadlines of those who wait in one runtime. A thread of its own sleeps until the first of them;
// it is started by the first deadline there is, so a program without any has no such thread.
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
    // Called once on the timers' thread, with their lock: must be short and must not come back
    // here.
    void (*fire)(entry&) noexcept = nullptr;
    bool armed = false;
    std::multimap<std::int64_t, entry*>::iterator where{};
  };

  timers() = default;
  ~timers();
  timers(const timers&) = delete;
  timers& operator=(const timers&) = delete;

  // Fires e at `deadline_ns` on the monotonic clock, or soon if that has passed. Any thread.
  void add(entry& e, std::int64_t deadline_ns);
  // Afterwards e has fired or never will.
  void remove(entry& e);
  // Nobody waits for a deadline.
  [[nodiscard]] bool empty() const noexcept { return count_.load(std::memory_order_seq_cst) == 0; }

 private:
  void run();

  std::mutex mutex_;
  std::multimap<std::int64_t, entry*> entries_;
  std::atomic<std::size_t> count_{0};
  os::futex_word changes_{0};
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace strata::detail
