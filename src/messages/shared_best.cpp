// SPDX-License-Identifier: Apache-2.0
#include "strata/shared_best.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "cluster/words/retry_without_memory.hpp"
#include "messages/best_follower.hpp"
#include "messages/current_messenger.hpp"
#include "messages/followed.hpp"
#include "messages/following_calls.hpp"
#include "messages/messenger.hpp"
#include "messages/telling.hpp"
#include "strata/detail/worker.hpp"
#include "sync/spin_lock.hpp"

namespace strata::detail {

using messages::messenger;
using messages::told_head;
using messages::told_word;

namespace {

told_head word_of_best(std::uint64_t number, told_word word, best_bits value = 0) {
  return {.number = number, .value = value, .what = messages::told_of::best, .word = word};
}

}  // namespace

// Any thread, and who handles messages.
class best_state {
 public:
  best_state(best_bits first, const best_type& type)
      : cell(std::make_shared<best_cell>(first)), type_(type) {}
  // Of its entry among this node's objects.
  static const void* mark() noexcept {
    static constexpr char unique = 0;
    return &unique;
  }

  // Another node wants to be told from now on; what it is not told is in the answer, since that is
  // read after it has been entered.
  best_bits follow(node_id_t node) {
    decltype(followers_) one;  // no memory is asked for with the lock held
    one.emplace(node, std::make_shared<best_teller>());
    const uninterrupted guard;
    const std::lock_guard lock(lock_);
    followers_.merge(one);
    return cell->load();
  }
  // Of node `by`.
  void hear(messenger& here, best_bits found, node_id_t by, std::uint64_t number) {
    if (cell->improve(found, type_)) tell_others(here, by, number);
  }
  // What is known when it is told, which is later than what they have to hear, or the same.
  void tell_others(messenger& here, node_id_t by, std::uint64_t number) {
    for_each_follower([&](node_id_t node, best_teller& teller) {
      if (node != by && teller.begins()) tell(here, node, number);
    });
  }
  // Node `by` has heard what it was told last.
  void is_heard(messenger& here, node_id_t by, std::uint64_t number) {
    const std::optional<follower> f = follower_from(by);
    if (f && f->node == by && !f->teller->has_told()) tell(here, by, number);
  }
  [[nodiscard]] std::vector<node_id_t> followers() {
    std::vector<node_id_t> all;
    for_each_follower([&](node_id_t node, best_teller&) { all.push_back(node); });
    return all;
  }
  void tell_of_end(messenger& here, std::uint64_t number) {
    for_each_follower([&](node_id_t node, best_teller&) {
      here.tell(node, word_of_best(number, told_word::over));
    });
  }

  const std::shared_ptr<best_cell> cell;

 private:
  struct follower {
    node_id_t node;
    std::shared_ptr<best_teller> teller;
  };
  void tell(messenger& here, node_id_t node, std::uint64_t number) const {
    here.tell(node, word_of_best(number, told_word::known, cell->load()));
  }
  // Without the lock while it is called. One that comes meanwhile may be left out: what it would be
  // told is in its answer.
  template <class F>
  void for_each_follower(F f) {
    for (auto one = follower_from(0); one; one = follower_from(one->node + 1U))
      f(one->node, *one->teller);
  }
  // The first whose number is no less.
  std::optional<follower> follower_from(unsigned node) {
    const uninterrupted guard;
    const std::lock_guard lock(lock_);
    const auto found = followers_.lower_bound(node);
    if (found == followers_.end()) return std::nullopt;
    return follower{static_cast<node_id_t>(found->first), found->second};
  }

  const best_type& type_;
  spin_lock lock_;
  // By node: of many, each says that it has heard.
  std::map<unsigned, std::shared_ptr<best_teller>> followers_;
};

namespace {

using entry = messages::followed<best_follower>;

void report_by_word(messenger& here, const entry& known, std::uint64_t number) {
  here.tell(known.home, word_of_best(number, told_word::found, known.here.cell.load()));
}

void hear_report(best_state& state, best_bits found, node_id_t by, std::uint64_t number) {
  state.hear(*messages::messenger_here(), found, by, number);
}

// A call, which somebody awaits.
void report_now(best_place p) {
  if (const auto known = messages::messenger_here()->bests.find(p.number)) {
    (void)call<&apply_to_resource<&hear_report, best_state, best_bits, node_id_t, std::uint64_t>>(
        on_node{p.where.node()}, p.where, p.number, known->here.cell.load(), node_id(), p.number);
  }
}

}  // namespace

std::shared_ptr<best_cell> best_cell_here(const best_place& p, const best_type& type) {
  if (p.where.node() == node_id()) {
    const held_object held(p.number, p.where.local());
    if (held.get() == nullptr) refuse_ended_resource(p.where.node());
    return static_cast<best_state*>(held.get())->cell;
  }
  messenger& here = *messages::messenger_here();
  const auto ask = [&](entry& e) {
    here.await_answer(e.answer, e.home, word_of_best(p.number, told_word::asks));
    e.here.cell.improve(e.answer.value(), type);
  };
  const auto known = here.bests.follow(p.number, p.where.node(), ask, p.first, type);
  return {known, &known->here.cell};
}

void tell_best(const best_place& p) {
  const node_id_t self = node_id();
  messenger& here = *messages::messenger_here();
  if (p.where.node() == self) {
    const held_object held(p.number, p.where.local());
    if (held.get() != nullptr)
      static_cast<best_state*>(held.get())->tell_others(here, self, p.number);
  } else if (const auto known = here.bests.find(p.number)) {
    if (known->here.reports.begins()) report_by_word(here, *known, p.number);
  }
}

best_owner::best_owner(best_bits first, const best_type& type)
    : state_(std::make_unique<best_state>(first, type)),
      entry_(state_.get(), best_state::mark()),
      place_{to_global(state_.get()), entry_.number(), first} {}

best_owner::~best_owner() {
  if (!entry_.end()) {
    (void)state_.release();  // a call is in progress, perhaps for ever
  } else if (messenger* const here = messages::messenger_here()) {
    state_->tell_of_end(*here, place_.number);
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

namespace strata::messages {

using strata::detail::best_state;
using strata::detail::word_of_best;

namespace {

void hear_at_home_of_best(messenger& here, net::node_id from, const told_head& head) {
  if (head.word == told_word::found) here.tell(from, word_of_best(head.number, told_word::heard));
  const object_at_home<best_state> state(*here.objects, head.number);
  if (head.word == told_word::asks && !state)
    return here.tell(from, word_of_best(head.number, told_word::ended));
  if (!state) return;  // it has ended meanwhile
  if (head.word == told_word::asks) {
    const auto value = cluster::retry_without_memory([&] { return state->follow(from); });
    here.tell(from, word_of_best(head.number, told_word::answers, value));
  } else if (head.word == told_word::found) {
    state->hear(here, head.value, from, head.number);
  } else {
    state->is_heard(here, from, head.number);
  }
}

void hear_from_home_of_best(messenger& here, net::node_id from, const told_head& head) {
  if (head.word == told_word::known) here.tell(from, word_of_best(head.number, told_word::heard));
  here.bests.hear(from, head, [&](followed<strata::detail::best_follower>& known) {
    if (head.word == told_word::known) {
      (void)known.here.cell.improve(head.value, known.here.type);
    } else if (!known.here.reports.has_told()) {  // it has heard
      strata::detail::report_by_word(here, known, head.number);
    }
  });
}

}  // namespace

void hear_of_best(messenger& here, net::node_id from, const told_head& head) {
  switch (head.word) {
    case told_word::asks:
    case told_word::found:
      return hear_at_home_of_best(here, from, head);
    case told_word::answers:
    case told_word::ended:
    case told_word::known:
    case told_word::over:
      return hear_from_home_of_best(here, from, head);
    case told_word::heard:
      // Numbers begin with their node's, but whose it is the tables know.
      if (here.bests.find(head.number) != nullptr) return hear_from_home_of_best(here, from, head);
      return hear_at_home_of_best(here, from, head);
    default:
      throw cluster::malformed("a word that bests do not have");
  }
}

}  // namespace strata::messages
