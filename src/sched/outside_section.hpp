// SPDX-License-Identifier: Apache-2.0
// A thread without a worker, main() for example, may be interrupted anywhere by a handler of the
// program, also where it has a lock of the runtime that the handler's own call needs. It says that
// it is there by a count of its own, and such a call is put off until it leaves: that costs no
// system call, as blocking signals would. (Workers of pthreads block all signals; where others do
// not, their handlers use nothing of the runtime.)
#pragma once
#include <atomic>

#include "strata/detail/worker.hpp"

namespace strata::detail {

struct outside_state {
  // Relaxed, both: by one OS thread alone, and what interrupts it.
  std::atomic<unsigned> depth{0};
  std::atomic<void (*)()> at_end{nullptr};  // set by a handler; takes no lock itself
};
extern thread_local constinit outside_state outside_here __attribute__((tls_model("initial-exec")));

// While one exists the caller may hold locks of the runtime.
class outside_section {
 public:
  outside_section() noexcept : counts_(this_worker().owner == nullptr) {
    if (!counts_) return;
    change_depth(+1);
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  ~outside_section() {
    if (!counts_) return;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    change_depth(-1);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (outside_here.at_end.load(std::memory_order_relaxed) != nullptr) [[unlikely]]
      do_what_was_put_off();
  }
  outside_section(const outside_section&) = delete;
  outside_section& operator=(const outside_section&) = delete;

  // By a handler: it has interrupted the calling thread in one.
  [[nodiscard]] static bool is_here() noexcept {
    return outside_here.depth.load(std::memory_order_relaxed) != 0;
  }
  // Within one: f() is called when it has ended.
  static void at_end(void (*f)()) noexcept {
    outside_here.at_end.store(f, std::memory_order_relaxed);
  }

 private:
  // Two steps: what interrupts us in between leaves it as it was.
  static void change_depth(int by) noexcept {
    auto& depth = outside_here.depth;
    depth.store(depth.load(std::memory_order_relaxed) + static_cast<unsigned>(by),
                std::memory_order_relaxed);
  }
  static void do_what_was_put_off() noexcept;

  const bool counts_;
};

}  // namespace strata::detail
