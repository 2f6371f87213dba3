// SPDX-License-Identifier: Apache-2.0
#include "tasks.hpp"

#include <deque>
#include <utility>

#include "strata/future.hpp"
#include "strata/resource.hpp"
#include "strata/shared_task.hpp"

namespace strata::test {
namespace {

// By their numbers, which travel. To the end of the program: who was refused a call does not know
// whether it will be made.
std::deque<std::function<void()>> functions;

void make_call_of(std::uint64_t number) { functions.at(number)(); }
auto call_of(std::function<void()> f) {
  functions.push_back(std::move(f));
  return call<make_call_of>(std::uint64_t{functions.size() - 1});
}

}  // namespace

struct begun_call::parts {
  future<std::uint32_t> answer;
};
begun_call::begun_call(std::function<std::uint32_t()> f)
    : parts_(std::make_unique<parts>(parts{strata::async(launch::async, std::move(f))})) {}
begun_call::~begun_call() = default;
bool begun_call::has_ended_within(std::chrono::nanoseconds limit) {
  return parts_->answer.wait_for(limit) == future_status::ready;
}
std::uint32_t begun_call::get() { return parts_->answer.get(); }

bool promise_times_out(std::chrono::nanoseconds limit) {
  promise<int> never;
  return never.get_future().wait_for(limit) == future_status::timeout;
}

struct named_task::parts {
  parts(std::string_view name, node_id_t there, std::function<void()> f)
      : task(name, on_node{there}, call_of(std::move(f))) {}
  named<shared_task> task;
};
named_task::named_task(std::string_view name, node_id_t there, std::function<void()> f)
    : parts_(std::make_unique<parts>(name, there, std::move(f))) {}
named_task::~named_task() = default;

struct awaited_task::parts {
  task_handle task;
};
awaited_task::awaited_task(std::string_view name)
    : parts_(std::make_unique<parts>(parts{task_handle::await(name)})) {}
awaited_task::~awaited_task() = default;
void awaited_task::join() { parts_->task.join(); }
bool awaited_task::has_ended() { return parts_->task.has_ended(); }
bool awaited_task::has_ended_within(std::chrono::nanoseconds limit) {
  return parts_->task.wait_for(limit);
}

void join_a_task_on(node_id_t there, std::function<void()> f) {
  shared_task(on_node{there}, call_of(std::move(f))).join();
}

}  // namespace strata::test
