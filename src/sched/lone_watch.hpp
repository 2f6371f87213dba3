// SPDX-License-Identifier: Apache-2.0
// Who waits for what on a node that has no others: told when nothing has moved for long and yet
// somebody outside waits for tasks, which wait for each other; and to whoever asks by a signal.
// With other nodes: cluster/work/stall_watch.hpp.
//
// No thread is there for this. The first worker's own thread looks now and then while it sleeps;
// who has asked is answered by the next worker that is about to sleep, and one is woken for that.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>

namespace strata::detail {

class scheduler;

class lone_watch {
 public:
  // after_ns: without progress, until it is told; 0: only to whoever asks. describe: for people, in
  // lines; by one thread at a time, not before somebody waits for a task, or asks.
  lone_watch(std::int64_t after_ns, std::function<std::string()> describe);
  lone_watch(const lone_watch&) = delete;
  lone_watch& operator=(const lone_watch&) = delete;

  // Describes who waits, soon. Also by a signal's handler.
  void ask() noexcept;
  // Nothing is told, and `describe` not called, from now on.
  void stop();

  // ---- the scheduler ----
  // Before there are workers.
  void begin(scheduler& s) noexcept { workers_ = &s; }
  // How long the first worker may sleep until look(); os::futex_forever_ns: as long as it likes.
  [[nodiscard]] std::int64_t look_ns() const noexcept;
  // By a thread that runs no worker meanwhile.
  void look() noexcept;
  // Seq_cst: who is about to sleep has announced it before. Partner: ask().
  [[nodiscard]] bool is_asked() const noexcept { return asked_.load(std::memory_order_seq_cst); }
  // By a worker that is about to sleep.
  void answer() noexcept;

 private:
  [[nodiscard]] bool is_stuck();
  void tell(const std::string& beginning);

  scheduler* workers_ = nullptr;
  const std::int64_t after_ns_;
  const std::function<std::string()> describe_;
  std::atomic<bool> asked_{false};

  std::mutex mutex_;
  bool over_ = false;
  bool told_ = false;  // of this stall
  std::uint64_t steps_seen_ = 0;
  std::int64_t moved_at_;
  std::int64_t answered_at_ = INT64_MIN / 2;
};

}  // namespace strata::detail
