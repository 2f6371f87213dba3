// SPDX-License-Identifier: Apache-2.0
#include "strata/shared_best.hpp"

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <optional>
#include <vector>

#include "messages/current_messenger.hpp"
#include "messages/followed.hpp"
#include "messages/following_calls.hpp"
#include "messages/messenger.hpp"
#include "strata/detail/worker.hpp"
#include "sync/spin_lock.hpp"

namespace strata::detail {

class best_state {
 public:
  best_state(best_bits first, const best_type& type)
      : cell(std::make_shared<best_cell>(first)), type_(type) {}

  // Another node wants to be told from now on; what it is not told is in the answer, since that is
  // read after it has been entered.
  best_bits follow(node_id_t node) {
    const uninterrupted guard;
    const std::lock_guard lock(lock_);
    if (std::find(followers_.begin(), followers_.end(), node) == followers_.end())
      followers_.push_back(node);
    return cell->load();
  }
  // Of node `by`.
  void hear(best_bits found, node_id_t by, std::uint64_t number) {
    if (cell->improve(found, type_)) tell_others(by, number);
  }
  // What is known now, which is later than what they have to hear, or the same. Nobody waits.
  void tell_others(node_id_t by, std::uint64_t number) {
    for (std::size_t i = 0; const std::optional<node_id_t> n = follower(i); ++i) {
      if (*n == by) continue;
      try {
        type_.tell(*n, number, cell->load());
      } catch (const node_left_error&) {
      }
    }
  }
  // Nobody else uses it.
  [[nodiscard]] const std::vector<node_id_t>& followers() const noexcept { return followers_; }
  [[nodiscard]] std::vector<node_id_t> followers_now() {
    std::vector<node_id_t> all;
    for (std::size_t i = 0; const std::optional<node_id_t> n = follower(i); ++i) all.push_back(*n);
    return all;
  }

  const std::shared_ptr<best_cell> cell;

 private:
  std::optional<node_id_t> follower(std::size_t i) {
    const uninterrupted guard;
    const std::lock_guard lock(lock_);
    if (i >= followers_.size()) return std::nullopt;
    return followers_[i];
  }

  const best_type& type_;
  spin_lock lock_;  // fibers must not wait
  std::vector<node_id_t> followers_;
};

namespace {

void forget_best(std::uint64_t number) { messages::messenger_here()->bests.forget(number); }

template <auto Function, class... Arguments>
auto call_at_home(const best_place& p, const Arguments&... arguments) {
  return call<&apply_to_resource<Function, best_state, Arguments...>>(
      on_node{p.where.node()}, p.where, p.number, arguments...);
}

// Of node `by`.
void hear_report(const best_place& p, best_bits found, node_id_t by) {
  const held_object held(p.number, p.where.local());
  if (held.get() != nullptr) static_cast<best_state*>(held.get())->hear(found, by, p.number);
}

void report_now(best_place p) {
  const auto known = messages::messenger_here()->bests.find(p.number);
  if (known == nullptr) return;
  (void)call_at_home<&best_state::hear>(p, known->here.load(), node_id(), p.number);
}

}  // namespace

std::shared_ptr<best_cell> best_cell_here(const best_place& p, const best_type& type) {
  if (p.where.node() == node_id()) {
    const held_object held(p.number, p.where.local());
    if (held.get() == nullptr) refuse_ended_resource(p.where.node());
    return static_cast<best_state*>(held.get())->cell;
  }
  const auto ask = [&](best_cell& here) {
    const auto answer = call_at_home<&best_state::follow>(p, node_id());
    if (!answer.exists) refuse_ended_resource(p.where.node());
    here.improve(answer.value, type);
  };
  const auto known = messages::messenger_here()->bests.follow(p.number, ask, p.first);
  return {known, &known->here};
}

// A call that nobody awaits: where its node has left it has ended, or will.
void tell_best(const best_place& p, best_bits found) {
  if (p.where.node() == node_id()) {
    const held_object held(p.number, p.where.local());
    if (held.get() != nullptr)
      static_cast<best_state*>(held.get())->tell_others(node_id(), p.number);
    return;
  }
  try {
    remote_thread(on_node{p.where.node()}, call<&hear_report>(p, found, node_id())).detach();
  } catch (const node_left_error&) {
  }
}

void hear_news_of_best(std::uint64_t number, best_bits news, const best_type& type) {
  if (const auto known = messages::messenger_here()->bests.find(number))
    known->here.improve(news, type);
}

best_owner::best_owner(best_bits first, const best_type& type)
    : state_(std::make_unique<best_state>(first, type)),
      entry_(state_.get()),
      place_{to_global(state_.get()), entry_.number(), first} {}

best_owner::~best_owner() {
  if (entry_.end()) {
    messages::tell_of_end<&forget_best>(state_->followers(), place_.number);
  } else {
    (void)state_.release();  // a call is in progress, perhaps for ever
  }
}

const std::shared_ptr<best_cell>& best_owner::cell() const noexcept { return state_->cell; }

best_bits best_owner::of_all_nodes() {
  const std::vector<node_id_t> others = state_->followers_now();
  if (!others.empty()) require_stack();
  std::vector<remote_thread> calls;
  calls.reserve(others.size());
  for (const node_id_t n : others) messages::begin_call<&report_now>(calls, n, place_);
  for (remote_thread& t : calls) messages::await_call(t);
  return state_->cell->load();
}

}  // namespace strata::detail
