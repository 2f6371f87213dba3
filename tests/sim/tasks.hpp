// SPDX-License-Identifier: Apache-2.0
// What tests of simulated nodes need of futures and of tasks with names. In a source of its own,
// for `strata::launch` is std::launch to those who include strata/future.hpp, and a namespace to
// those who include the launcher's parts, as the simulation does.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "strata/global_ptr.hpp"

namespace strata::test {

// async(), by a thread of the node that calls.
class begun_call {
 public:
  explicit begun_call(std::function<std::uint32_t()> f);
  begun_call(const begun_call&) = delete;
  begun_call& operator=(const begun_call&) = delete;
  ~begun_call();
  // future::wait_for() and get().
  [[nodiscard]] bool has_ended_within(std::chrono::nanoseconds limit);
  std::uint32_t get();

 private:
  struct parts;
  std::unique_ptr<parts> parts_;
};

// future::wait_for() of what is promised, and never comes.
[[nodiscard]] bool promise_times_out(std::chrono::nanoseconds limit);

// named<shared_task>; the nodes of a simulation share their memory, so any function will do.
class named_task {
 public:
  named_task(std::string_view name, node_id_t there, std::function<void()> f);
  named_task(const named_task&) = delete;
  named_task& operator=(const named_task&) = delete;
  ~named_task();

 private:
  struct parts;
  std::unique_ptr<parts> parts_;
};

// task_handle, of a name that is awaited.
class awaited_task {
 public:
  explicit awaited_task(std::string_view name);
  awaited_task(const awaited_task&) = delete;
  awaited_task& operator=(const awaited_task&) = delete;
  ~awaited_task();
  void join();
  [[nodiscard]] bool has_ended();
  // wait_for().
  [[nodiscard]] bool has_ended_within(std::chrono::nanoseconds limit);

 private:
  struct parts;
  std::unique_ptr<parts> parts_;
};

// A shared_task without a name.
void join_a_task_on(node_id_t there, std::function<void()> f);

}  // namespace strata::test
