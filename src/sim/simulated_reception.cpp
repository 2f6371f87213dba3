// SPDX-License-Identifier: Apache-2.0
#include "sim/simulated_reception.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace strata::sim {

simulated_reception::simulated_reception(world& w, const settings& s)
    : in_(w), how_(s), rules_(s.how, s.watchdog_ns), workers_(s.workers) {
  for (unsigned i = 0; i < s.workers; ++i) soon([this, i] { work(i); });
  soon([this] { receive(); });
}

void simulated_reception::after(std::int64_t ns, std::function<void()> step) {
  in_.at(in_.now_ns() + ns, std::move(step));
}

void simulated_reception::soon(std::function<void()> step) {
  after(
      static_cast<std::int64_t>(in_.random.below(static_cast<std::uint64_t>(how_.step_ns_max) + 1)),
      std::move(step));
}

bool simulated_reception::all_sleep() const {
  return std::all_of(workers_.begin(), workers_.end(), [](const worker& w) { return w.sleeps; });
}

bool simulated_reception::is_asleep() const {
  return all_sleep() && tasks_.empty() && receiver_ != place::awake;
}

// ---- what comes ----

void simulated_reception::run(std::int64_t length_ns) { add({.length_ns = length_ns}); }

void simulated_reception::converse(std::int64_t length_ns) {
  add({.length_ns = length_ns, .converses = true});
}

void simulated_reception::add(task t) {
  tasks_.push_back(t);
  wake_somebody();
}

void simulated_reception::hold_up(unsigned i, std::int64_t length_ns) {
  workers_[i].held_up_until = in_.now_ns() + length_ns;
}

// Who brings work wakes nobody while another is awake and will look.
void simulated_reception::wake_somebody() {
  for (unsigned i = 0; i < workers_.size(); ++i) {
    worker& w = workers_[i];
    if (!w.sleeps) continue;
    w.sleeps = false;
    w.is_called = true;
    return after(how_.wake_ns, [this, i] {
      workers_[i] = {};
      work(i);
    });
  }
}

void simulated_reception::arrive(handler handled) {
  inbox_.push_back(std::move(handled));
  // Partner: sleep_at_transport().
  if (attendants_ == 0) wake_receiver_at(place::at_transport);
}

void simulated_reception::arrive_from_afar(handler handled) {
  afar_.push_back(std::move(handled));
  if (attendants_ == 0) wake_receiver_at(place::at_transport);
}

// ---- the inbox ----

void simulated_reception::look(bool patiently, std::uint64_t& count, looker then) {
  if (in_.now_ns() >= inbox_free_at_) return look_now(count, std::move(then));
  if (!patiently) return then(sight::passed_by);
  after(inbox_free_at_ - in_.now_ns(),
        [this, &count, then = std::move(then)]() mutable { look(true, count, std::move(then)); });
}

// What is there now: what comes while it is handled is for the next look.
std::deque<simulated_reception::handler> simulated_reception::all_that_came() {
  if (rules_.counts_looks()) rules_.begins_to_look(in_.now_ns());
  std::deque<handler> taken = std::exchange(inbox_, {});
  std::move(afar_.begin(), afar_.end(), std::back_inserter(taken));
  afar_.clear();
  return taken;
}

void simulated_reception::look_now(std::uint64_t& count, looker then) {
  std::deque<handler> taken = all_that_came();
  inbox_free_at_ = in_.now_ns() + how_.look_ns;
  after(how_.look_ns, [&count, taken = std::move(taken), then = std::move(then)] {
    for (const handler& h : taken) {
      ++count;
      h();
    }
    then(taken.empty() ? sight::nothing : sight::found);
  });
}

// ---- a worker ----

void simulated_reception::work(unsigned i) {
  if (tasks_.empty()) {
    workers_[i].idle_since = in_.now_ns();
    return search(i);
  }
  const task t = tasks_.front();
  tasks_.pop_front();
  worker& w = workers_[i];
  const bool polled = std::exchange(w.polls, false);
  if (polled) --attendants_;
  // engine::end_polling(): what came while nobody was woken for it.
  if (polled && attendants_ == 0)
    return look(true, by_workers_, [this, i, t](sight) { run_task(i, t); });
  run_task(i, t);
}

void simulated_reception::run_task(unsigned i, task t) {
  if (t.converses) return converse_until(i, in_.now_ns() + t.length_ns);
  after(t.length_ns, [this, i] { end_task(i); });
}

// messenger::look_for() and engine::look_for_message(), again and again.
void simulated_reception::converse_until(unsigned i, std::int64_t end_ns) {
  if (in_.now_ns() >= end_ns) return end_task(i);
  after(how_.look_ns, [this, i, end_ns] { converse_until(i, end_ns); });
  if (!rules_.workers_look().load(std::memory_order_relaxed) || in_.now_ns() < inbox_free_at_)
    return;
  inbox_free_at_ = in_.now_ns() + how_.look_ns;
  const bool is_enough = how_.left_out == mutation::a_look_nearby_is_enough;
  std::deque<handler> taken;
  rules_.look_nearby(
      is_enough ? 1 : 2, [&] { return (taken = std::exchange(inbox_, {})).size(); },
      [&] { return (taken = all_that_came()).size(); }, [this] { return in_.now_ns(); });
  for (const handler& h : taken) {
    ++by_workers_;
    h();
  }
}

// Between two tasks: engine::look().
void simulated_reception::end_task(unsigned i) {
  const auto go_on = [this, i] { soon([this, i] { work(i); }); };
  if (!rules_.workers_look().load(std::memory_order_relaxed)) return go_on();
  if (!rules_.has_to_tell()) return look(false, by_workers_, [go_on](sight) { go_on(); });
  if (!rules_.is_time_to_look(static_cast<std::uint64_t>(in_.now_ns()),
                              static_cast<std::uint64_t>(how_.look_every_ns)))
    return go_on();
  look(false, by_workers_, [this, go_on](sight s) {
    if (s != sight::passed_by) rules_.looked(in_.now_ns(), s == sight::found);
    go_on();
  });
}

// One turn of scheduler::search_or_sleep(), with engine::poll().
void simulated_reception::search(unsigned i) {
  worker& w = workers_[i];
  if (in_.now_ns() < w.held_up_until)
    return after(w.held_up_until - in_.now_ns(), [this, i] { search(i); });
  if (!tasks_.empty()) return soon([this, i] { work(i); });
  if (!std::exchange(w.polls, true)) ++attendants_;
  look(false, by_workers_, [this, i](sight s) {
    const bool found = s == sight::found;
    if (s == sight::passed_by) {
      // Who has the inbox looks.
    } else if (rules_.has_handed_over()) {
      rules_.looked_idly(found, [this] { return in_.now_ns(); });
    } else if (found && rules_.calls_receivers(receiver_ == place::at_transport,
                                               [this] { return in_.now_ns(); })) {
      wake_receiver_at(place::at_transport);
    }
    if (!tasks_.empty()) return soon([this, i] { work(i); });
    if (in_.now_ns() - workers_[i].idle_since < how_.spin_ns) return soon([this, i] { search(i); });
    soon([this, i] { fall_asleep(i); });
  });
}

void simulated_reception::fall_asleep(unsigned i) {
  workers_[i].polls = false;
  --attendants_;
  const auto go_on = [this, i](sight) {
    soon([this, i] {
      if (rules_.is_to_rouse(attendants_)) rouse();
      soon([this, i] { announce(i); });
    });
  };
  if (attendants_ == 0 && how_.left_out != mutation::no_last_look)
    return look(true, by_workers_, go_on);
  go_on(sight::passed_by);
}

// It says that it sleeps, and then looks for work once more.
void simulated_reception::announce(unsigned i) {
  workers_[i].sleeps = true;
  if (all_sleep() && rules_.last_is_to_rouse()) rouse();
  soon([this, i] {
    worker& w = workers_[i];
    if (tasks_.empty() || w.is_called) return;
    w.sleeps = false;
    work(i);
  });
}

// ---- the receiver ----

// engine::run_receiver() and leave_it_to_workers().
void simulated_reception::receive() {
  const std::uint32_t epoch = epoch_;
  soon([this, epoch] {
    const cluster::reception_rules::turn turn =
        rules_.begin_turn(in_.now_ns(), all_sleep(), attendants_, how_.beat_ns);
    if (turn.looks) return begin_turn();
    turn_.rest();
    const auto sleep = [this, epoch, turn] {
      soon([this, epoch, turn] { sleep_elsewhere(epoch, turn.elsewhere_ns); });
    };
    if (!turn.is_held_up || how_.left_out == mutation::nobody_looks_for_others) return sleep();
    look(true, by_receiver_, [this, sleep](sight s) {
      if (s == sight::found) rules_.heard_by_watcher(in_.now_ns());
      sleep();
    });
  });
}

// Until nothing has come meanwhile, or it has looked for long.
void simulated_reception::begin_turn() {
  turn_began_at_ = in_.now_ns();
  turn_.begin(turn_began_at_);
  take_in();
}

void simulated_reception::take_in() {
  look(true, by_receiver_, [this, before = by_receiver_](sight) {
    using outcome = cluster::receiver_turn::outcome;
    const outcome how = turn_.looked(by_receiver_ - before, [this] { return in_.now_ns(); });
    const bool goes_on = how == outcome::looks_again ||
                         (how == outcome::is_over && how_.left_out == mutation::a_turn_has_no_end);
    if (goes_on) return soon([this] { take_in(); });
    end_turn(how);
  });
}

void simulated_reception::end_turn(cluster::receiver_turn::outcome how) {
  longest_turn_ns_ = std::max(longest_turn_ns_, in_.now_ns() - turn_began_at_);
  if (how == cluster::receiver_turn::outcome::is_over) return soon([this] { receive(); });
  if (turn_.has_found() && !all_sleep()) rules_.heard_by_receiver(in_.now_ns());
  soon([this] { rules_.has_handed_over() ? receive() : sleep_at_transport(); });
}

// What arrived before is not slept over; while somebody else polls it is that one's.
void simulated_reception::sleep_at_transport() {
  if (unattended() != 0 && attendants_ == 0) return soon([this] { receive(); });
  receiver_ = place::at_transport;
  const std::uint64_t which = ++receiver_sleep_;
  after(how_.beat_ns, [this, which] {
    if (receiver_sleep_ == which) wake_receiver_at(place::at_transport);
  });
}

void simulated_reception::sleep_elsewhere(std::uint32_t epoch, std::int64_t ns) {
  if (epoch_ != epoch) return soon([this] { receive(); });
  receiver_ = place::elsewhere;
  const std::uint64_t which = ++receiver_sleep_;
  after(ns, [this, which] {
    if (receiver_sleep_ == which) wake_receiver_at(place::elsewhere);
  });
}

void simulated_reception::wake_receiver_at(place p) {
  if (receiver_ != p) return;
  receiver_ = place::awake;
  ++receiver_sleep_;
  if (p == place::at_transport) ++wakes_;
  after(how_.wake_ns, [this, p] {
    if (p == place::elsewhere && rules_.counts_looks() && rules_.is_overlooked(in_.now_ns()))
      return look(true, by_receiver_, [this](sight) { receive(); });
    receive();
  });
}

void simulated_reception::rouse() {
  if (how_.left_out == mutation::nobody_rouses) return;
  ++epoch_;
  wake_receiver_at(place::elsewhere);
}

}  // namespace strata::sim
