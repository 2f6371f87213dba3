// SPDX-License-Identifier: Apache-2.0
#include "strata/shared_best.hpp"

#include <algorithm>
#include <cstddef>
#include <exception>
#include <mutex>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "messages/best_follower.hpp"
#include "messages/current_messenger.hpp"
#include "messages/followed.hpp"
#include "messages/following_calls.hpp"
#include "messages/messenger.hpp"
#include "strata/detail/worker.hpp"
#include "strata/thread.hpp"
#include "sync/spin_lock.hpp"

namespace strata::detail {

namespace {

// Something that `teller` has to tell has changed; tell() suspends. Waits for nothing.
template <class Tell>
void begin_telling(const std::shared_ptr<best_teller>& teller, Tell tell) {
  if (!teller->begins()) return;
  try {
    thread([teller, tell] {
      try {
        do tell();
        while (!teller->has_told());
      } catch (const node_lost_error&) {  // or left: nobody is there who would hear
      } catch (const std::exception&) {   // for want of memory
        teller->give_up();
      }
    }).detach();
  } catch (...) {
    teller->give_up();
    throw;
  }
}

}  // namespace

class best_state {
 public:
  best_state(best_bits first, const best_type& type)
      : cell(std::make_shared<best_cell>(first)), type_(type) {}

  // Another node wants to be told from now on; what it is not told is in the answer, since that is
  // read after it has been entered.
  best_bits follow(node_id_t node) {
    auto made = std::make_shared<best_teller>();
    const uninterrupted guard;
    const std::lock_guard lock(lock_);
    if (std::none_of(followers_.begin(), followers_.end(),
                     [node](const follower& f) { return f.node == node; }))
      followers_.push_back({node, std::move(made)});
    return cell->load();
  }
  // Of node `by`.
  void hear(best_bits found, node_id_t by, std::uint64_t number) {
    if (cell->improve(found, type_)) tell_others(by, number);
  }
  // What is known when it is told, which is later than what they have to hear, or the same. Who
  // cannot be told keeps nobody from it.
  void tell_others(node_id_t by, std::uint64_t number) {
    std::exception_ptr error;
    for (std::size_t i = 0; const std::optional<follower> f = follower_at(i); ++i) {
      if (f->node == by) continue;
      try {
        begin_telling(f->teller, [node = f->node, number, known = cell, &type = type_] {
          type.tell(node, number, known->load());
        });
      } catch (...) {
        error = std::current_exception();
      }
    }
    if (error != nullptr) std::rethrow_exception(error);
  }
  [[nodiscard]] std::vector<node_id_t> followers() {
    std::vector<node_id_t> all;
    for (std::size_t i = 0; const std::optional<follower> f = follower_at(i); ++i)
      all.push_back(f->node);
    return all;
  }

  const std::shared_ptr<best_cell> cell;

 private:
  struct follower {
    node_id_t node;
    std::shared_ptr<best_teller> teller;
  };
  std::optional<follower> follower_at(std::size_t i) {
    const uninterrupted guard;
    const std::lock_guard lock(lock_);
    if (i >= followers_.size()) return std::nullopt;
    return followers_[i];
  }

  const best_type& type_;
  spin_lock lock_;  // fibers must not wait
  std::vector<follower> followers_;
};

namespace {

void forget_best(std::uint64_t number) { messages::messenger_here()->bests.forget(number); }

template <auto Function, class... Arguments>
auto call_at_home(const best_place& p, const Arguments&... arguments) {
  return call<&apply_to_resource<Function, best_state, Arguments...>>(
      on_node{p.where.node()}, p.where, p.number, arguments...);
}

void report(const best_place& p, const best_cell& known) {
  (void)call_at_home<&best_state::hear>(p, known.load(), node_id(), p.number);
}

void report_now(best_place p) {
  if (const auto known = messages::messenger_here()->bests.find(p.number))
    report(p, known->here.cell);
}

}  // namespace

std::shared_ptr<best_cell> best_cell_here(const best_place& p, const best_type& type) {
  if (p.where.node() == node_id()) {
    const held_object held(p.number, p.where.local());
    if (held.get() == nullptr) refuse_ended_resource(p.where.node());
    return static_cast<best_state*>(held.get())->cell;
  }
  const auto ask = [&](best_follower& here) {
    const auto answer = call_at_home<&best_state::follow>(p, node_id());
    if (!answer.exists) refuse_ended_resource(p.where.node());
    here.cell.improve(answer.value, type);
  };
  const auto known = messages::messenger_here()->bests.follow(p.number, ask, p.first);
  return {known, &known->here.cell};
}

void tell_best(const best_place& p) {
  if (p.where.node() == node_id()) {
    const held_object held(p.number, p.where.local());
    if (held.get() != nullptr)
      static_cast<best_state*>(held.get())->tell_others(node_id(), p.number);
  } else if (const auto known = messages::messenger_here()->bests.find(p.number)) {
    begin_telling(known->here.reports, [p, known] { report(p, known->here.cell); });
  }
}

void hear_news_of_best(std::uint64_t number, best_bits news, const best_type& type) {
  if (const auto known = messages::messenger_here()->bests.find(number))
    known->here.cell.improve(news, type);
}

best_owner::best_owner(best_bits first, const best_type& type)
    : state_(std::make_unique<best_state>(first, type)),
      entry_(state_.get()),
      place_{to_global(state_.get()), entry_.number(), first} {}

best_owner::~best_owner() {
  if (!entry_.end()) {
    (void)state_.release();  // a call is in progress, perhaps for ever
    return;
  }
  try {
    messages::tell_of_end<&forget_best>(state_->followers(), place_.number);
  } catch (const std::bad_alloc&) {  // they keep an entry that nobody uses
  }
}

const std::shared_ptr<best_cell>& best_owner::cell() const noexcept { return state_->cell; }

best_bits best_owner::of_all_nodes() {
  const std::vector<node_id_t> others = state_->followers();
  if (!others.empty()) require_stack();
  std::vector<remote_thread> calls;
  calls.reserve(others.size());
  for (const node_id_t n : others) messages::begin_call<&report_now>(calls, n, place_);
  for (remote_thread& t : calls) messages::await_call(t);
  return state_->cell->load();
}

}  // namespace strata::detail
