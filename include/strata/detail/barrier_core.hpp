// SPDX-License-Identifier: Apache-2.0
// What barriers are made of. Those who wait are listed for each worker apart, so arriving touches
// one shared word, and at the end of a phase each list goes back as a whole to the worker on which
// its threads ran: their stacks are still in that core's cache, and no thread has to be moved.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "strata/detail/parking.hpp"

namespace strata::detail {

struct no_completion {
  void operator()() noexcept {}
};

class barrier_core {
 public:
  using phase_token = std::uint32_t;
  static constexpr std::ptrdiff_t count_max = (std::ptrdiff_t{1} << 31) - 1;

  // `complete(argument)` is called by the last to arrive, before anybody goes on.
  constexpr barrier_core(std::ptrdiff_t count, void (*complete)(void*), void* argument)
      : complete_(complete),
        argument_(argument),
        expected_(count),
        now_(static_cast<std::uint64_t>(count) << missing_at) {
    if (count < 0 || count > count_max) refuse_count();
    if (!std::is_constant_evaluated()) make_lists();
  }
  ~barrier_core();
  barrier_core(const barrier_core&) = delete;
  barrier_core& operator=(const barrier_core&) = delete;

  // n: at most as many as are still expected.
  phase_token arrive(std::ptrdiff_t n);
  // The same for who may be mistaken: other nodes, whose mistake would hold everybody for ever. Who
  // has arrived counts in `phase`, also where others, too many, are about to end the one before.
  struct attempt {
    phase_token phase = 0;
    std::int64_t missing = 0;      // before
    std::uint8_t has_arrived = 0;  // 0: no, and nothing has changed; no bool, as it travels
  };
  [[nodiscard]] attempt try_arrive(std::ptrdiff_t n);
  // Waits by wait_once(), which may throw; the arrivals that the token stands for count on. Whether
  // the phase has ended by then.
  bool wait(phase_token phase, unparked (*wait_once)(const parking&) = &park,
            std::int64_t deadline_ns = parking::never);
  // True for one of them in each phase.
  bool arrive_and_wait();
  void arrive_and_drop();
  [[nodiscard]] attempt try_arrive_and_drop();

 private:
  class lists;
  struct arrival;
  struct phase_question;

  // What is missing in a phase and which it is are one word: so an arrival counts in the phase that
  // it is told. Missing is what lies above; below zero: more have come than it counts.
  static constexpr unsigned missing_at = 32;
  static constexpr std::uint64_t one_missing = std::uint64_t{1} << missing_at;
  static constexpr std::uint64_t phases = (std::uint64_t{1} << 31) - 1;
  // Somebody has arrived and is about to take itself out of expected_: whoever comes last leaves
  // the end of the phase to it.
  static constexpr std::uint64_t dropping = phases + 1;
  static std::int64_t missing_in(std::uint64_t now) noexcept {
    return static_cast<std::int64_t>(now) >> missing_at;
  }
  static phase_token phase_in(std::uint64_t now) noexcept {
    return static_cast<phase_token>(now & phases);
  }

  [[noreturn]] static void refuse_count();
  void make_lists();
  // Counts n arrivals, which may be too many. Returns what there was before.
  std::uint64_t count_arrivals(std::ptrdiff_t n) noexcept;
  // Of what count_arrivals() has returned.
  static bool are_last(std::ptrdiff_t n, std::uint64_t before) noexcept {
    return (before & ~phases) == static_cast<std::uint64_t>(n) << missing_at;
  }
  static bool commit(struct stack& s, void* self);
  static bool is_in_phase(void* argument);
  // The last of a phase: ends it.
  void end_phase() noexcept;

  void (*const complete_)(void*);
  void* const argument_;
  std::atomic<std::int64_t> expected_;  // in each phase
  std::atomic<std::uint64_t> now_;
  lists* lists_ = nullptr;  // null when made outside a runtime
};

}  // namespace strata::detail
