// SPDX-License-Identifier: Apache-2.0
// What barriers are made of. Those who wait are listed for each worker apart, so arriving touches
// one shared word, and at the end of a phase each list goes back as a whole to the worker on which
// its threads ran: their stacks are still in that core's cache, and no thread has to be moved.
#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "strata/detail/barrier_word.hpp"
#include "strata/detail/parking.hpp"

namespace strata::detail {

struct no_completion {
  void operator()() noexcept {}
};

class barrier_core {
 public:
  using phase_token = barrier_word<>::phase_token;
  static constexpr std::ptrdiff_t count_max = (std::ptrdiff_t{1} << 31) - 1;

  // `complete(argument)` is called by the last to arrive, before anybody goes on.
  constexpr barrier_core(std::ptrdiff_t count, void (*complete)(void*), void* argument)
      : complete_(complete), argument_(argument), word_(count) {
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

  [[noreturn]] static void refuse_count();
  void make_lists();
  // Which may be too many.
  barrier_word<>::arrival count_arrivals(std::ptrdiff_t n) noexcept;
  [[nodiscard]] attempt tell(bool has_arrived, const barrier_word<>::arrival& a) noexcept;
  static bool commit(struct stack& s, void* self);
  static bool is_in_phase(void* argument);
  // The last of a phase: ends it.
  void end_phase() noexcept;

  void (*const complete_)(void*);
  void* const argument_;
  barrier_word<> word_;
  lists* lists_ = nullptr;  // null when made outside a runtime
};

}  // namespace strata::detail
