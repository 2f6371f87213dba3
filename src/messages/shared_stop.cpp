// SPDX-License-Identifier: Apache-2.0
#include "strata/shared_stop.hpp"

#include <exception>
#include <mutex>

#include "messages/current_messenger.hpp"
#include "messages/followed.hpp"
#include "messages/following_calls.hpp"
#include "messages/messenger.hpp"
#include "strata/remote_thread.hpp"

namespace strata {

namespace detail {
namespace {

void hear_stop(std::uint64_t number) {
  if (const auto known = messages::messenger_here()->stops.find(number)) known->here.request_stop();
}

void forget_stop(std::uint64_t number) { messages::messenger_here()->stops.forget(number); }

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
    for (const node_id_t n : told) messages::begin_call<&hear_stop>(calls, n, number);
  } catch (...) {
    here.request_stop();
    throw;
  }
  here.request_stop();
  for (remote_thread& t : calls) messages::await_call(t);
  return true;
}

void shared_stop_state::tell_of_end(std::uint64_t number) const noexcept {
  messages::tell_of_end<&forget_stop>(followers_, number);
}

}  // namespace detail

stop_token stop_handle::token() const {
  if (!where_) return {};
  if (where_.node() == node_id()) {
    const detail::held_object held(number_, where_.local());
    if (held.get() == nullptr) detail::refuse_ended_resource(node());
    return static_cast<detail::shared_stop_state*>(held.get())->here.get_token();
  }
  const auto ask = [&](stop_source& here) {
    using state = detail::shared_stop_state;
    const auto answer = call<&detail::apply_to_resource<&state::follow, state, node_id_t>>(
        on_node{node()}, where_, number_, node_id());
    if (!answer.exists) detail::refuse_ended_resource(node());
    if (answer.value) here.request_stop();
  };
  return messages::messenger_here()->stops.follow(number_, ask)->here.get_token();
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
