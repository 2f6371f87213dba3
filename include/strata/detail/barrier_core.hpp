// SPDX-License-Identifier: Apache-2.0
// What barriers are made of. Those who wait are listed for each worker apart, so arriving touches
// one shared word, and at the end of a phase each list goes back as a whole to the worker on which
// its threads ran: their stacks are still in that core's cache, and no thread has to be moved.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace strata::detail {

struct no_completion {
  void operator()() noexcept {}
};

class barrier_core {
 public:
  using phase_token = std::uint32_t;
  static constexpr std::ptrdiff_t count_max = (std::ptrdiff_t{1} << 31) - 1;

  // `complete(argument)` is called by the last to arrive, before anybody goes on.
  barrier_core(std::ptrdiff_t count, void (*complete)(void*), void* argument);
  ~barrier_core();
  barrier_core(const barrier_core&) = delete;
  barrier_core& operator=(const barrier_core&) = delete;

  // n: at most as many as are still expected.
  phase_token arrive(std::ptrdiff_t n);
  void wait(phase_token phase);
  // True for one of them in each phase.
  bool arrive_and_wait();
  void arrive_and_drop();

 private:
  struct lists;
  struct arrival;

  static bool commit(struct stack& s, void* self);
  static bool is_in_phase(void* argument);
  // The last of a phase: ends it.
  void end_phase() noexcept;

  void (*const complete_)(void*);
  void* const argument_;
  std::atomic<std::int64_t> expected_;  // in each phase
  std::atomic<std::int64_t> left_;      // in this phase
  std::atomic<phase_token> phase_{0};
  std::unique_ptr<lists> lists_;  // null when made outside a runtime
};

}  // namespace strata::detail
