// SPDX-License-Identifier: Apache-2.0
// Tasks with names: a call on a node of the program's choice, which any thread of the job can look
// up and join. After pCoR's tasks as resources (docs/architecture.md#sources).
//
//   strata::named<strata::shared_task> index("index", strata::on_node{2}, strata::call<build>(7));
//   strata::task_handle::await("index").join();      // on any node, in any number of threads
// Where the name is taken the call has begun all the same, and is awaited before named<> throws.
//
// What nobody else joins needs no name: strata/remote_thread.hpp.
#pragma once
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "strata/detail/deadline.hpp"
#include "strata/detail/parking.hpp"
#include "strata/error.hpp"
#include "strata/future.hpp"
#include "strata/remote_thread.hpp"
#include "strata/resource.hpp"
#include "strata/semaphore.hpp"

namespace strata {

/// A call that is made as a thread, once, and that any number of threads await. It belongs to the
/// node that makes it, wherever the call is made. All functions may be called by any thread of that
/// node at any time.
class shared_task {
 public:
  /// Begins the call on that node, on_node{2} or 2; what it returns is dropped. Never blocks.
  /// Throws misuse_error for a number that no node has had, and outside a runtime;
  /// std::system_error if there is no room for one more thread on this node.
  template <auto Function, class... Arguments>
  shared_task(on_node where, const travelling_call<Function, Arguments...>& c)
      : ended_(begin(checked(where), c)) {}
  /// The same for a lambda that captures nothing, or another function object without state.
  template <class F, class... Arguments>
  requires(std::is_empty_v<F>&& std::is_default_constructible_v<F>)
      shared_task(on_node where, F, const Arguments&... arguments)
      : shared_task(where, travelling_call<F{}, Arguments...>(arguments...)) {}
  /// Suspends until the call has ended. What it threw is dropped.
  ~shared_task() = default;
  shared_task(const shared_task&) = delete;
  shared_task& operator=(const shared_task&) = delete;

  /// Suspends until the call has ended; what it did on its node is done. Rethrows what it threw, as
  /// remote_error if that was on another node. Throws node_left_error if that node had left,
  /// node_lost_error when any is lost while the call lasts.
  void join() {
    (void)is_over_by(INT64_MAX);
    ended_.get();
  }
  /// Suspends until the call has ended, for that long at most: whether it has. Throws as join(),
  /// but not what the call threw, and std::system_error or std::bad_alloc where there is no thread
  /// or memory for a deadline.
  template <class Rep, class Period>
  [[nodiscard]] bool wait_for(const std::chrono::duration<Rep, Period>& time) {
    return has_ended_by(detail::deadline_after(time));
  }
  /// The same until `time` at the latest.
  template <class Clock, class Duration>
  [[nodiscard]] bool wait_until(const std::chrono::time_point<Clock, Duration>& time) {
    return detail::attempt_until(time, [this](std::int64_t ns) { return has_ended_by(ns); });
  }
  /// Never blocks.
  [[nodiscard]] bool has_ended() {
    return ended_.wait_for(std::chrono::seconds(0)) == future_status::ready;
  }

 private:
  friend class task_handle;
  bool is_over_by(std::int64_t deadline_ns) {
    while (!over_.try_wait()) {
      const detail::unparked how = detail::park_in_job(
          {.what = "task to end",
           .address = &over_,
           .still = [](void* over) { return !static_cast<latch*>(over)->try_wait(); },
           .argument = &over_,
           .deadline_ns = deadline_ns});
      if (how == detail::unparked::timed_out) return over_.try_wait();
    }
    return true;
  }
  bool has_ended_by(std::int64_t deadline_ns) {
    if (!is_over_by(deadline_ns)) return false;
    ended_.wait();
    return true;
  }
  static bool ends_within(shared_task& t, std::int64_t limit_ns) {
    return t.has_ended_by(detail::deadline_after(std::chrono::nanoseconds(limit_ns)));
  }
  static on_node checked(on_node where) {
    if (where.number >= num_nodes() || detail::this_worker().owner == nullptr)
      throw misuse_error("a task on node " + std::to_string(where.number) + ": this job has " +
                         std::to_string(num_nodes()) +
                         " nodes, and tasks begin within a runtime (runtime::run())");
    return where;
  }
  template <class Call>
  shared_future<void> begin(on_node where, const Call& c) {
    return strata::async(launch::async,
                         [this, where, c] {
                           const struct at_its_end {
                             ~at_its_end() { over->count_down(); }
                             latch* over;
                           } counts_down{&over_};
                           if (where.number == node_id()) {
                             detail::call_until_exit(c);
                           } else {
                             remote_thread(where, c).join();
                           }
                         })
        .share();
  }

  latch over_{1};              // who joins waits for it: the result is there in a moment
  shared_future<void> ended_;  // the only one, whose end awaits the thread
};

/// A task as other nodes use it. Every function is a call to the node that has made the task, and
/// throws as resource<T>::call() does too.
class task_handle {
 public:
  /// Of a task that is known already.
  explicit task_handle(resource<shared_task> t) noexcept : t_(t) {}
  /// The one with this name. Suspends as find_name() does. Throws misuse_error if there is none.
  static task_handle find(std::string_view name) {
    return task_handle(resource<shared_task>::find(name));
  }
  /// The same; suspends until there is one.
  static task_handle await(std::string_view name) {
    return task_handle(resource<shared_task>::await(name));
  }
  /// Suspends until the task has ended; what it did is done. Rethrows what it threw, as
  /// remote_error if this is another node than the task's or its maker's.
  void join() { t_.call<&shared_task::join>(); }
  /// Suspends until the task has ended, for that long at most, and for the call: whether it has.
  /// The time is that of the task's node. Throws as join(), but not what the task threw, and
  /// std::system_error or std::bad_alloc (from another node remote_error) where there is no thread
  /// or memory for a deadline.
  template <class Rep, class Period>
  [[nodiscard]] bool wait_for(const std::chrono::duration<Rep, Period>& time) {
    return has_ended_by(detail::deadline_after(time));
  }
  /// The same until `time` at the latest, on the caller's clock.
  template <class Clock, class Duration>
  [[nodiscard]] bool wait_until(const std::chrono::time_point<Clock, Duration>& time) {
    return detail::attempt_until(time, [this](std::int64_t ns) { return has_ended_by(ns); });
  }
  /// Suspends for the call alone.
  [[nodiscard]] bool has_ended() { return t_.call<&shared_task::has_ended>(); }

 private:
  bool has_ended_by(std::int64_t deadline_ns) {
    return t_.call<&shared_task::ends_within>(detail::time_until(deadline_ns));
  }
  resource<shared_task> t_;
};

}  // namespace strata
