// SPDX-License-Identifier: Apache-2.0
// How one OS thread sleeps until a signal comes for the process, or somebody rings. Nothing but a
// signal ends the kernel's wait for signals, so who rings sends one, to the sleeper alone. It has a
// number that the program may use, too; but the kernel keeps what is sent to a thread apart from
// what is sent to the process, so neither takes the other's place, and ours has a mark.
//
// Who rings sends nothing while the sleeper is awake, so that it can send itself a signal of that
// number, for which a ring could be taken: what is on its way then it knows of, and takes before.
//
// Kernel says what the kernel does (bell.hpp has it):
//   note_caller()       the calling OS thread, and keeps whose it is
//   can_ring(thread)    whether the calling thread may send it a ring
//   send_ring(thread)   a signal that is_ring() knows; one is kept, further ones are the same
//   await(set, info)    the number of one of `set`, or a ring; -1: interrupted, or gone again
//   await_ring(info)    the same of the ring's number alone; -1 also when none comes for long
//   look(set, info)     of `set`, at once; -1: none
#pragma once
#include <atomic>
#include <cstdint>

namespace strata::detail::posix {

template <class Kernel, template <class> class Atomic = std::atomic>
class basic_bell {
 public:
  using set_type = typename Kernel::set_type;
  using info_type = typename Kernel::info_type;
  using thread_type = typename Kernel::thread_type;

  // ---- by anybody, also in handlers ----
  // What the caller did before is seen by who comes back from sleep() or has_rung() afterwards.
  void ring() noexcept {
    // Seq_cst, before the look at the state: else we and the sleeper could miss each other. An
    // exchange: a store would hide from it what those did who have rung just before. Partner:
    // sleep().
    rung_.exchange(true, std::memory_order_seq_cst);
    // Who may not send any leaves `asleep` as it is, for the next.
    if (state_.load(std::memory_order_seq_cst) != state::asleep || !kernel_.can_ring(sleeper()))
      return;
    state expected = state::asleep;
    // Relaxed where it fails: nothing is read that goes by it.
    if (state_.compare_exchange_strong(expected, state::called, std::memory_order_seq_cst,
                                       std::memory_order_relaxed))
      kernel_.send_ring(sleeper());
  }
  // The same, and once more where a ring is on its way: a program that ignores its number from now
  // on has thrown it away.
  void ring_again() noexcept {
    ring();
    if (state_.load(std::memory_order_relaxed) == state::called) kernel_.send_ring(sleeper());
  }
  // Nobody (thread_type{}): there is none yet, and rings are not heard. Partner: begin().
  [[nodiscard]] thread_type sleeper() const noexcept {
    return sleeper_.load(std::memory_order_acquire);
  }

  // ---- by the sleeper ----
  // The calling OS thread is it; it has all signals blocked.
  void begin() noexcept {
    // Release: from now on it can be told. Partner: sleeper().
    sleeper_.store(kernel_.note_caller(), std::memory_order_release);
  }

  // The number of one that has come for the process, of `set` or the ring's; 0: somebody has rung.
  int sleep(const set_type& set, info_type& info) noexcept {
    for (;;) {
      if (has_kept_) return look(set, info);
      // Seq_cst, before the look: see ring(). Where a ring is on its way it stays `called`: that
      // one wakes us, whatever it is about.
      if (!is_coming_) state_.store(state::asleep, std::memory_order_seq_cst);
      if (rung_.exchange(false, std::memory_order_seq_cst)) {
        if (!is_coming_) wake_up();
        return 0;
      }
      const int found = kernel_.await(set, info);
      // What has woken us is not there any more: if it was a ring none comes.
      if (found < 0 || Kernel::is_ring(info)) {
        take_ring();
        continue;
      }
      if (!is_coming_) wake_up();
      return found;
    }
  }

  // The number of one that is there already; 0: none.
  int look(const set_type& set, info_type& info) noexcept {
    if (has_kept_) {
      has_kept_ = false;
      info = kept_;
      return Kernel::ring_number;
    }
    for (;;) {
      const int found = kernel_.look(set, info);
      if (found < 0) return 0;
      if (!Kernel::is_ring(info)) return found;
      take_ring();
    }
  }

  // Somebody has rung since it was asked, or slept, last.
  bool has_rung() noexcept {
    // Seq_cst: see ring().
    return rung_.load(std::memory_order_relaxed) &&
           rung_.exchange(false, std::memory_order_seq_cst);
  }

  // Until the next sleep() no ring comes to the caller, but for a second one of ring_again(), and
  // one that was on its way when the sleeper was interrupted: those are nobody's where they come
  // to a handler.
  void quieten() noexcept {
    while (is_coming_) {
      info_type info;
      const int found = kernel_.await_ring(info);
      if (found < 0 || Kernel::is_ring(info)) {
        take_ring();
      } else {
        has_kept_ = true;
        kept_ = info;
      }
    }
  }

 protected:
  Kernel& kernel() noexcept { return kernel_; }

 private:
  enum state : std::uint32_t { awake, asleep, called };

  void wake_up() noexcept {
    state expected = state::asleep;
    // Relaxed: what a ring tells of goes by rung_.
    if (!state_.compare_exchange_strong(expected, state::awake, std::memory_order_relaxed,
                                        std::memory_order_relaxed))
      is_coming_ = true;
  }

  void take_ring() noexcept {
    is_coming_ = false;
    state_.store(state::awake, std::memory_order_relaxed);
  }

  Atomic<state> state_{state::awake};
  Atomic<bool> rung_{false};
  Atomic<thread_type> sleeper_{thread_type{}};
  // By the sleeper alone.
  bool is_coming_ = false;  // a ring, though it is awake
  bool has_kept_ = false;   // a signal of the program, which has come while it waited for a ring
  info_type kept_{};
  [[no_unique_address]] Kernel kernel_;
};

}  // namespace strata::detail::posix
