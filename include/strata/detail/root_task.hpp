// SPDX-License-Identifier: Apache-2.0
// The task that a thread from outside waits for.
#pragma once
#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <type_traits>

#include "strata/detail/join.hpp"
#include "strata/detail/outcome.hpp"
#include "strata/detail/profile.hpp"
#include "strata/detail/task.hpp"
#include "strata/detail/thread_exit.hpp"

namespace strata::detail {

struct root_task : task {
  static constexpr std::uint32_t running = 0;
  static constexpr std::uint32_t ended = 1;
  static constexpr std::uint32_t awaited = 2;  // the outside thread sleeps on `state`

  explicit root_task(const task_type& t) noexcept : task{&t} {}
  // Tells the waiting thread. `this` may be gone when it returns.
  void complete() noexcept;

  strand measure;              // used when profiling
  std::exception_ptr failure;  // left a fiber meanwhile
  std::atomic<std::uint32_t> state{running};
  int guest_place = -1;  // where the waiting thread works meanwhile; -1: it waits outside
};

// For a function that has a value to return.
[[noreturn]] void refuse_exit_of_root();

// pthread_exit() in the function ends it.
template <class F>
struct until_exit {
  F* function;
  std::invoke_result_t<F&> operator()() {
    try {
      return std::invoke(*function);
    } catch (const thread_exit&) {
      if constexpr (!std::is_void_v<std::invoke_result_t<F&>>) refuse_exit_of_root();
    }
  }
};

template <class F>
struct root_call : root_task {
  explicit root_call(F& f) noexcept : root_task(type_of), function(std::addressof(f)) {}
  static void body(task& t) {
    auto& self = static_cast<root_call&>(t);
    until_exit<F> call{self.function};
    if (this_worker().profiling) {
      measured<until_exit<F>> function{&call, &self.measure};
      self.out.capture(function);
    } else {
      self.out.capture(call);
    }
    self.complete();
  }
  static constexpr task_type type_of{&run_on_stack, &body, nullptr, &type_name<F>};

  F* function;
  outcome<std::invoke_result_t<F&>> out;
};

}  // namespace strata::detail
