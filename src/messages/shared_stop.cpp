// SPDX-License-Identifier: Apache-2.0
// A node that uses a handle makes an entry of its own first, and then asks the stop's node to be
// told; so a request finds the entry there, or has come before the question and is the answer.
#include "strata/shared_stop.hpp"

#include <exception>
#include <mutex>

#include "messages/current_messenger.hpp"
#include "messages/followed_stops.hpp"
#include "messages/messenger.hpp"
#include "strata/remote_thread.hpp"

namespace strata {

namespace detail {
namespace {

void stop_follower(std::uint64_t number) {
  if (const auto known = messages::messenger_here()->stops.find(number)) known->here.request_stop();
}

void end_follower(std::uint64_t number) { messages::messenger_here()->stops.forget(number); }

template <auto Function>
void begin_call(std::vector<remote_thread>& calls, node_id_t node, std::uint64_t number) {
  try {
    calls.emplace_back(on_node{node}, strata::call<Function>(number));
  } catch (const node_left_error&) {  // and takes its tokens with it
  }
}

void await_call(remote_thread& t) {
  try {
    t.join();
  } catch (const node_left_error&) {
  }
}

bool may_wait() noexcept {
  try {
    require_stack();
  } catch (const misuse_error&) {
    return false;
  }
  return true;
}

}  // namespace

bool shared_stop_state::follow(node_id_t node) {
  const std::lock_guard lock(changes_);
  followers_.push_back(node);  // it hears of the end in any case
  return is_requested_;
}

bool shared_stop_state::request(std::uint64_t number) {
  std::vector<remote_thread> calls;
  std::vector<node_id_t> told;
  {
    const std::lock_guard lock(changes_);
    if (is_requested_) return false;
    if (!followers_.empty()) require_stack();
    calls.reserve(followers_.size());
    told = followers_;
    is_requested_ = true;
  }
  try {
    for (const node_id_t n : told) begin_call<stop_follower>(calls, n, number);
  } catch (...) {
    here.request_stop();
    throw;
  }
  here.request_stop();
  for (remote_thread& t : calls) await_call(t);
  return true;
}

void shared_stop_state::tell_of_end(std::uint64_t number) const noexcept {
  try {
    std::vector<remote_thread> calls;
    calls.reserve(followers_.size());
    for (const node_id_t n : followers_) begin_call<end_follower>(calls, n, number);
    const bool waits = may_wait();
    for (remote_thread& t : calls) {
      if (waits) {
        await_call(t);
      } else {
        t.detach();
      }
    }
  } catch (const std::exception&) {  // they keep an entry that nobody uses
  }
}

}  // namespace detail

stop_token stop_handle::token() const {
  if (!where_) return {};
  if (where_.node() == node_id()) {
    const detail::held_object held(number_, where_.local());
    if (held.get() == nullptr) detail::refuse_ended_resource(node());
    return static_cast<detail::shared_stop_state*>(held.get())->here.get_token();
  }
  messages::followed_stops& stops = messages::messenger_here()->stops;
  for (;;) {
    const std::shared_ptr<messages::followed_stop> known = stops.of(number_);
    // Acquire: after what the other node answered. Partner: the store below.
    if (known->is_told.load(std::memory_order_acquire)) return known->here.get_token();
    const std::lock_guard lock(known->asking);
    if (known->is_told.load(std::memory_order_relaxed)) return known->here.get_token();
    if (known->is_forgotten) continue;  // who asked before us had no answer
    try {
      using state = detail::shared_stop_state;
      const auto answer = call<&detail::apply_to_resource<&state::follow, state, node_id_t>>(
          on_node{node()}, where_, number_, node_id());
      if (!answer.exists) detail::refuse_ended_resource(node());
      if (answer.value) known->here.request_stop();
    } catch (...) {
      known->is_forgotten = true;
      stops.forget(number_);
      throw;
    }
    known->is_told.store(true, std::memory_order_release);
    return known->here.get_token();
  }
}

bool stop_handle::request() const {
  if (!where_) throw misuse_error("a stop is requested by a handle that refers to nothing");
  using state = detail::shared_stop_state;
  const auto answer = call<&detail::apply_to_resource<&state::request, state, std::uint64_t>>(
      on_node{node()}, where_, number_, number_);
  if (!answer.exists) detail::refuse_ended_resource(node());
  return answer.value;
}

shared_stop::shared_stop()
    : state_(std::make_unique<detail::shared_stop_state>()),
      entry_(state_.get()),
      handle_(to_global(state_.get()), entry_.number()) {}

shared_stop::~shared_stop() {
  if (entry_.end()) {
    state_->tell_of_end(entry_.number());
  } else {
    (void)state_.release();  // a request is in progress, perhaps for ever
  }
}

}  // namespace strata
