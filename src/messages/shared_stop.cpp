// SPDX-License-Identifier: Apache-2.0
#include "strata/shared_stop.hpp"

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <new>
#include <optional>
#include <vector>

#include "cluster/words/retry_without_memory.hpp"
#include "messages/current_messenger.hpp"
#include "messages/followed.hpp"
#include "messages/following_calls.hpp"
#include "messages/messenger.hpp"
#include "messages/telling.hpp"
#include "strata/detail/join.hpp"
#include "strata/remote_thread.hpp"
#include "sync/spin_lock.hpp"

namespace strata {

namespace detail {

using messages::messenger;
using messages::told_head;
using messages::told_word;

struct stop_access {
  static void announce(const stop_source& s) noexcept { s.state_.get()->announce(); }
};

namespace {

told_head word_of_stop(std::uint64_t number, told_word word, std::uint64_t value = 0) {
  return {.number = number, .value = value, .what = messages::told_of::stop, .word = word};
}

// A call to a node that has been told of it by a word: its callbacks are called by a thread.
void hear_stop(std::uint64_t number) {
  if (const auto known = messages::messenger_here()->stops.find(number)) known->here.request_stop();
}

}  // namespace

// On the node that has made it. Any thread, and who handles messages.
class shared_stop_state {
 public:
  stop_source here;
  // Of its entry among this node's objects.
  static const void* mark() noexcept {
    static constexpr char unique = 0;
    return &unique;
  }

  // Another node has a token of it from now on. True: a stop has been requested already.
  [[nodiscard]] bool follow(node_id_t node) {
    const uninterrupted guard;
    const std::lock_guard lock(lock_);
    if (std::find(followers_.begin(), followers_.end(), node) == followers_.end())
      followers_.push_back(node);  // it hears of the end in any case
    return is_announced_;
  }
  // All tokens know it from now on, those of other nodes as soon as they can. request() with that
  // ticket follows, and is the first one. Waits for nothing.
  void announce(messenger& by, std::uint64_t number, std::uint64_t ticket) {
    {
      const uninterrupted guard;
      const std::lock_guard lock(lock_);
      if (std::exchange(is_announced_, true)) return;
      first_ = ticket;
    }
    spread(&by, number);
  }
  // That request does not come: the next one is the first.
  void give_up(std::uint64_t ticket) {
    const uninterrupted guard;
    const std::lock_guard lock(lock_);
    if (ticket != 0 && ticket == first_) first_ = anybody;
  }
  // Tells this node and all that follow; false: somebody has requested it before. ticket: which no
  // other request has; 0: that was not announced.
  bool request(std::uint64_t number, std::uint64_t ticket) {
    bool is_news = false;
    {
      const uninterrupted guard;
      const std::lock_guard lock(lock_);
      if (is_announced_ && first_ != anybody && (ticket == 0 || ticket != first_)) return false;
      if (!followers_.empty()) require_stack();
      is_news = !std::exchange(is_announced_, true);
      first_ = 0;
    }
    if (is_news) spread(messages::messenger_here(), number);
    std::vector<remote_thread> calls;
    try {
      // Who follows from now on knows it by the answer.
      std::vector<node_id_t> told;
      for (std::size_t i = 0; const auto n = follower_at(i); ++i) told.push_back(*n);
      calls.reserve(told.size());
      for (const node_id_t n : told) messages::begin_call<&hear_stop>(calls, n, number);
    } catch (const std::bad_alloc&) {
      here.request_stop();
      begin_anew();
      throw;
    } catch (...) {
      here.request_stop();
      throw;
    }
    here.request_stop();
    for (remote_thread& t : calls) messages::await_call(t);
    return true;
  }
  // Nobody else uses it.
  void tell_of_end(messenger& by, std::uint64_t number) {
    for (const node_id_t n : followers_) by.tell(n, word_of_stop(number, told_word::over));
  }

 private:
  static constexpr std::uint64_t anybody = UINT64_MAX;
  // Some have not been told: the next request is the first.
  void begin_anew() {
    const uninterrupted guard;
    const std::lock_guard lock(lock_);
    first_ = anybody;
  }
  // by: null outside a runtime.
  void spread(messenger* by, std::uint64_t number) {
    stop_access::announce(here);
    if (by == nullptr) return;
    for (std::size_t i = 0; const auto n = follower_at(i); ++i)
      by->tell(*n, word_of_stop(number, told_word::known));
  }
  std::optional<node_id_t> follower_at(std::size_t i) {
    const uninterrupted guard;
    const std::lock_guard lock(lock_);
    if (i >= followers_.size()) return std::nullopt;
    return followers_[i];
  }

  spin_lock lock_;
  std::vector<node_id_t> followers_;
  bool is_announced_ = false;
  std::uint64_t first_ = 0;  // the ticket of the request that is still to come
};

}  // namespace detail

stop_token stop_handle::token() const {
  if (!where_) return {};
  if (where_.node() == node_id()) {
    const detail::held_object held(number_, where_.local());
    if (held.get() == nullptr) detail::refuse_ended_resource(node());
    return static_cast<detail::shared_stop_state*>(held.get())->here.get_token();
  }
  messages::messenger& here = *messages::messenger_here();
  const auto ask = [&](messages::followed<stop_source>& e) {
    here.await_answer(e.answer, e.home, detail::word_of_stop(number_, messages::told_word::asks));
    if (e.answer.value() != 0) e.here.request_stop();
  };
  return here.stops.follow(number_, node(), ask)->here.get_token();
}

bool stop_handle::request() const {
  if (!where_) throw misuse_error("a stop is requested by a handle that refers to nothing");
  using state = detail::shared_stop_state;
  using number = std::uint64_t;
  number ticket = 0;
  if (node() != node_id()) {
    detail::require_stack();
    messages::messenger& here = *messages::messenger_here();
    ticket = here.names.new_publication(node_id());
    // Before the call, for which a worker is needed there.
    here.tell(node(), detail::word_of_stop(number_, messages::told_word::wants, ticket));
  }
  const auto answer = [&] {
    try {
      return call<&detail::apply_to_resource<&state::request, state, number, number>>(
          on_node{node()}, where_, number_, number_, ticket);
    } catch (...) {  // perhaps for want of memory, and it has not begun
      if (ticket != 0)
        messages::messenger_here()->tell(
            node(), detail::word_of_stop(number_, messages::told_word::fails, ticket));
      throw;
    }
  }();
  if (!answer.exists) detail::refuse_ended_resource(node());
  return answer.value;
}

shared_stop::shared_stop()
    : state_(std::make_unique<detail::shared_stop_state>()),
      entry_(state_.get(), detail::shared_stop_state::mark()),
      handle_(to_global(state_.get()), entry_.number()) {}

shared_stop::~shared_stop() {
  if (!entry_.end()) {
    (void)state_.release();  // a request is in progress, perhaps for ever
  } else if (messages::messenger* const here = messages::messenger_here()) {
    state_->tell_of_end(*here, entry_.number());
  }
}

stop_token shared_stop::token() const noexcept { return state_->here.get_token(); }

bool shared_stop::request() { return state_->request(entry_.number(), 0); }

namespace messages {

using strata::detail::shared_stop_state;
using strata::detail::stop_access;
using strata::detail::word_of_stop;

namespace {

void hear_at_home_of_stop(messenger& here, net::node_id from, const told_head& head) {
  const object_at_home<shared_stop_state> state(*here.objects, head.number);
  if (head.word == told_word::wants) {
    if (state) state->announce(here, head.number, head.value);
    return;
  }
  if (head.word == told_word::fails) {
    if (state) state->give_up(head.value);
    return;
  }
  if (!state) return here.tell(from, word_of_stop(head.number, told_word::ended));
  const bool is_requested = cluster::retry_without_memory([&] { return state->follow(from); });
  here.tell(from, word_of_stop(head.number, told_word::answers, is_requested ? 1 : 0));
}

}  // namespace

void hear_of_stop(messenger& here, net::node_id from, const told_head& head) {
  switch (head.word) {
    case told_word::asks:
    case told_word::wants:
    case told_word::fails:
      return hear_at_home_of_stop(here, from, head);
    case told_word::answers:
    case told_word::ended:
    case told_word::known:
    case told_word::over:
      return here.stops.hear(
          from, head, [](followed<stop_source>& known) { stop_access::announce(known.here); });
    default:
      throw cluster::malformed("a word that stops do not have");
  }
}

}  // namespace messages

}  // namespace strata
