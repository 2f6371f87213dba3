// SPDX-License-Identifier: Apache-2.0
// The engine's inbox: who looks for messages, when, and what becomes of each.
#include <algorithm>
#include <chrono>
#include <mutex>
#include <string>
#include <utility>

#include "cluster/engine/engine.hpp"
#include "cluster/engine/receiver_turn.hpp"
#include "cluster/opening/transports.hpp"
#include "net/causality.hpp"
#include "os/clock.hpp"
#include "strata/error.hpp"

namespace strata::cluster {
namespace {

constexpr std::size_t messages_at_once = 256;
// A worker takes in about so much before it runs what has become ready: what comes for a receive
// that has not begun is kept in a copy.
constexpr std::size_t worker_bytes = 8192;
// So often an idle worker finds the inbox locked before it gives its core away, for so long: what
// is handled meanwhile may have become its work.
constexpr unsigned tries = 16;
constexpr auto pause = std::chrono::microseconds(50);
// So often somebody who stands in for the receiver finds as much as it takes in at once.
constexpr unsigned stand_in_turns = 4;
constexpr std::int64_t leave_every_ns = 10'000'000;
// With adaptive reception workers look no more often, however short their tasks are.
constexpr std::int64_t look_every_ns = 1000;
std::uint64_t look_ticks() noexcept {
  static const std::uint64_t ticks = os::to_ticks(look_every_ns);
  return ticks;
}

// Set while this thread handles messages: it must not wait for anything that needs messages to be
// handled.
thread_local bool is_handling = false;

}  // namespace

void engine::on_message(const net::header& h, std::span<const std::byte> payload) {
  net::message_arrives();
  bytes_taken_ += payload.size();
  protocols_->life.heard_of(h.source);
  const auto k = static_cast<kind>(h.kind);
  if (networks_ != nullptr && !networks_->comes(h.source, k, payload)) return;
  receive(h.source, k, payload);
}

// What has come, and is not to be kept until something else has.
void engine::receive(node_id from, kind k, std::span<const std::byte> payload) {
  try {
    handle(from, k, payload);
  } catch (const malformed& e) {
    lose(from, std::string("it has sent nonsense: ") + e.what());
  } catch (...) {
    // The program's mistake, such as a signal too many. The message has come all the same, and the
    // failure must be known before that is: what waits for quiescence would wait for ever.
    workers_.fail(std::current_exception());
    if (carries_work(k)) protocols_->counts.received.fetch_add(1, std::memory_order_seq_cst);
  }
}

void engine::handle(node_id from, kind k, std::span<const std::byte> payload) {
  cluster::handle(from, k, payload,
                  {*protocols_, *stalls_, *membership_protocol_, networks_.get(), *links_, members_,
                   broken_.load(std::memory_order_relaxed)},
                  *this);
}

bool engine::on_other_kind(node_id from, kind k) {
  switch (k) {
    case kind::stop:
      stopping_.store(true, std::memory_order_seq_cst);
      departures_.end(departures::cause::stopped);
      return true;
    case kind::goodbye:
      // It may have ended before it heard that this one leaves.
      (void)membership_protocol_->on_lost(from);
      if (self_ == 0 && broken_.load(std::memory_order_relaxed)) say(from, kind::stop, {}, {});
      (void)departures_.add(from);
      return true;
    case kind::report:
      print_report_once();
      return true;
    default:
      return false;
  }
}

std::size_t engine::poll_all(std::size_t messages_max) {
  if (rules_.counts_looks()) rules_.begins_to_look(os::now_ns());
  return poll_these(transports_, messages_max);
}

std::size_t engine::poll_these(std::span<const std::unique_ptr<net::transport>> some,
                               std::size_t messages_max) {
  is_handling = true;
  std::size_t n = 0;
  for (const auto& t : some) {
    polled_ = t.get();
    n += t->poll(*this, messages_max);
  }
  if (n != 0) {
    const std::size_t each = std::exchange(bytes_taken_, 0) / n;
    worker_messages_.store(std::clamp<std::size_t>(worker_bytes / (each + 1), 1, messages_at_once),
                           std::memory_order_relaxed);
  }
  if (strays_.is_any()) [[unlikely]]
    give_up_strays();
  is_handling = false;
  return n;
}

void engine::hear(const connections& joined) {
  is_handling = true;
  for (const early_message& m : joined.early) on_message(m.head, m.payload);
  // The other end may have begun with it, and have said already that it goes on by the other one.
  for (const auto& [n, over] : joined.lost_spares) {
    polled_ = over;
    // It may be the only one.
    if (links_->has_spare(n) || links_->way_to(n) == polled_) on_lost(n, "closed the connection");
  }
  is_handling = false;
}

std::size_t engine::look_nearby(const std::unique_ptr<net::transport>& t,
                                std::size_t messages_max) {
  const auto there = [&] { return poll_these({&t, 1}, messages_max); };
  const auto everywhere = [&] { return poll_all(messages_max); };
  return rules_.look_nearby(transports_.size(), there, everywhere, &os::now_ns);
}

bool engine::take_in() noexcept {
  const std::unique_lock lock(inbox_, std::try_to_lock);
  return lock.owns_lock() && poll_all(worker_messages_.load(std::memory_order_relaxed)) != 0;
}

// Who holds the inbox may have lost its core, even to a caller that tries again and again.
std::size_t engine::take_in_patiently() noexcept {
  const std::lock_guard lock(inbox_);
  return poll_all(messages_at_once);
}

bool engine::poll() noexcept {
  static thread_local unsigned refused = 0;
  std::unique_lock lock(inbox_, std::try_to_lock);
  if (!lock.owns_lock()) {
    if (++refused < tries) return false;
    if (!lock.try_lock_until(std::chrono::system_clock::now() + pause)) return false;
  }
  refused = 0;
  const bool found = poll_all(worker_messages_.load(std::memory_order_relaxed)) != 0;
  if (rules_.how() == reception::polling && !polled_since_beat_.load(std::memory_order_relaxed))
    polled_since_beat_.store(true, std::memory_order_relaxed);
  if (rules_.has_handed_over()) {
    rules_.looked_idly(found, &os::now_ns);
  } else if (found && rules_.calls_receivers(receivers_asleep_.load(std::memory_order_relaxed) != 0,
                                             &os::now_ns)) {
    for (const auto& t : transports_) t->wake_receiver();
  }
  return found;
}

void engine::look() noexcept {
  if (!rules_.has_to_tell()) {
    take_in();
  } else if (rules_.is_time_to_look(os::ticks(), look_ticks())) {
    std::unique_lock lock(inbox_, std::try_to_lock);
    if (!lock.owns_lock()) return;
    const bool found = poll_all(worker_messages_.load(std::memory_order_relaxed)) != 0;
    lock.unlock();
    rules_.looked(os::now_ns(), found);
  }
}

mailer::sight engine::look_for_message(node_id from) noexcept {
  if (!workers_look->load(std::memory_order_relaxed)) return sight::useless;
  const auto* const t = nearby();
  if (t == nullptr) return sight::useless;
  // A program may wait for an endpoint of a node that there is not.
  if (from >= nodes_) return sight::useless;
  if (from != self_ && links_->way_to(from) != t->get()) return sight::useless;
  const std::unique_lock lock(inbox_, std::try_to_lock);
  if (!lock.owns_lock()) return sight::nothing;
  return look_nearby(*t, 1) != 0 ? sight::found : sight::nothing;
}

void engine::rouse_receivers() noexcept {
  // Partner: leave_it_to_workers().
  idle_epoch_.fetch_add(1, std::memory_order_release);
  os::futex_wake(idle_epoch_, INT32_MAX);
}

void engine::wake_timekeeper() noexcept {
  rouse_receivers();
  transports_.front()->wake_receiver();
}

void engine::worker_sleeps() noexcept {
  if (rules_.is_to_rouse(pollers_.load(std::memory_order_relaxed))) rouse_receivers();
}

void engine::all_sleep() noexcept {
  if (rules_.last_is_to_rouse()) rouse_receivers();
}

void engine::begin_polling() noexcept {
  pollers_.fetch_add(1, std::memory_order_relaxed);
  for (const auto& t : transports_) t->attended();
}

void engine::end_polling() noexcept {
  pollers_.fetch_sub(1, std::memory_order_relaxed);
  // Where workers look the one that has found something to do goes on looking; receives that it
  // begins take what has come without a copy that is kept.
  const std::size_t messages_max = workers_look->load(std::memory_order_relaxed)
                                       ? worker_messages_.load(std::memory_order_relaxed)
                                       : messages_at_once;
  for (const auto& t : transports_) stop_attending(t, messages_max);
}

void engine::stop_attending(const std::unique_ptr<net::transport>& t,
                            std::size_t messages_max) noexcept {
  if (!t->unattended()) return;
  // What came while nobody was woken for it. Not try_lock: whoever holds the inbox may have passed
  // it already, and count on us.
  std::unique_lock lock(inbox_);
  const std::size_t n = poll_these({&t, 1}, messages_max);
  lock.unlock();
  // There may be more. The caller has something better to do.
  if (n == messages_max) t->wake_receiver();
}

bool engine::stand_in(os::futex_word& own, std::uint32_t expected) noexcept {
  using outcome = net::transport::stand_in_outcome;
  const auto* const t = front_door();
  if (t == nullptr) return false;
  const auto is_free = [&] { return own.load(std::memory_order_acquire) == expected; };
  for (;;) {
    const outcome how = (*t)->stand_in(own, expected);
    if (how == outcome::not_here) return false;
    if (how == outcome::left) {
      if (!is_free()) return true;
      continue;
    }
    // As a worker takes them in: what they bring may be for us.
    const std::size_t messages_max = worker_messages_.load(std::memory_order_relaxed);
    std::size_t n = messages_max;
    for (unsigned turn = 0; turn < stand_in_turns && n >= messages_max && is_free(); ++turn) {
      const std::lock_guard lock(inbox_);
      n = look_nearby(*t, messages_max);
    }
    if (n >= messages_max || !is_free()) {
      stop_attending(*t, messages_max);
      return !is_free();  // if it is, a stream: the receiver's, who looks at all transports alike
    }
    // Whatever has become of `own`: what has come meanwhile it sees when it has announced once more
    // that it sleeps.
    (void)(*t)->unattended();
  }
}

void engine::rouse_stand_in() noexcept {
  if (const auto* const t = front_door()) (*t)->rouse_stand_in();
}

void engine::dismiss_stand_in() noexcept {
  if (const auto* const t = front_door()) (*t)->dismiss_stand_in();
}

const std::unique_ptr<net::transport>* engine::nearby() const noexcept {
  const auto found = std::find_if(transports_.begin(), transports_.end(),
                                  [](const auto& t) { return t->about().looks_cheaply; });
  return found == transports_.end() ? nullptr : &*found;
}

bool engine::leave_it_to_workers(std::uint32_t seen, std::int64_t most_ns) {
  if (!workers_look->load(std::memory_order_relaxed)) return false;
  // They look themselves while there is one awake.
  const bool asleep = workers_.all_sleep() || leaves_.load(std::memory_order_relaxed) ||
                      stopping_.load(std::memory_order_acquire);
  const reception_rules::turn turn =
      rules_.begin_turn(os::now_ns(), asleep, pollers_.load(std::memory_order_relaxed), most_ns);
  if (turn.looks) return false;
  if (turn.is_held_up && take_in_patiently() != 0) rules_.heard_by_watcher(os::now_ns());
  os::blocking_futex_wait(idle_epoch_, seen, turn.elsewhere_ns);
  if (rules_.counts_looks() && rules_.is_overlooked(os::now_ns())) take_in_patiently();
  return true;
}

void engine::run_receiver(net::transport& t) {
  const std::int64_t beat_ns = protocols_->life.beat_ns();
  const bool keeps_time = &t == transports_.front().get();
  const std::int64_t look_ns = std::min(beat_ns, stalls_->look_ns());
  std::int64_t beat_at = os::now_ns() + beat_ns;
  receiver_turn turn(std::int64_t{settings_.receiver_spin_us} * 1000);
  // A turn that is not at its end goes on: what has come before the end is taken in.
  while (turn.goes_on() || !stopping_.load(std::memory_order_acquire) || !everybody_is_gone()) {
    // Acquire: what somebody wants who has roused us. Who does so from now on ends the sleep below.
    // Partner: rouse_receivers().
    const std::uint32_t seen = idle_epoch_.load(std::memory_order_acquire);
    std::int64_t due_ns = INT64_MAX;
    if (keeps_time) {
      due_ns = std::min(
          {look_after_networks(), look_after_suspicions(), protocols_->balance.ask_in_time()});
      stalls_->on_time();
      if (leaves_.load(std::memory_order_relaxed)) try_to_leave();
      if (os::now_ns() >= beat_at) {
        beat_at = os::now_ns() + beat_ns;
        keep_in_touch();
      }
    }
    if (settle_wanted_.exchange(false, std::memory_order_acq_rel)) {
      if (broken_.load(std::memory_order_seq_cst))
        workers_.settle(false);
      else
        protocols_->failed.settle();
    }
    if (report_wanted_.exchange(false, std::memory_order_acq_rel)) report_everywhere();
    if (answer_wanted_.exchange(false, std::memory_order_acq_rel)) stalls_->send_answer();
    if (leave_it_to_workers(seen, std::min(beat_ns, due_ns))) {
      turn.rest();
      continue;
    }

    turn.begin(os::now_ns());
    while (turn.looked(take_in_patiently(), &os::now_ns) == receiver_turn::outcome::looks_again)
      os::spin_pause();
    if (turn.goes_on()) continue;
    if (turn.has_found() && !workers_.all_sleep()) rules_.heard_by_receiver(os::now_ns());
    if (rules_.has_handed_over()) continue;
    const bool hurries =
        stopping_.load(std::memory_order_acquire) || leaves_.load(std::memory_order_relaxed);
    const std::int64_t until_ns = hurries ? leave_every_ns : look_ns;
    const std::int64_t beat_in_ns = std::max<std::int64_t>(beat_at - os::now_ns(), 0);
    receivers_asleep_.fetch_add(1, std::memory_order_relaxed);
    t.wait_for_messages(keeps_time ? std::min({until_ns, due_ns, beat_in_ns}) : until_ns);
    receivers_asleep_.fetch_sub(1, std::memory_order_relaxed);
  }
}

void engine::wait_for_room(node_id to) {
  if (is_handling || !links_->is_congested(to)) return;
  if (rules_.how() == reception::blocking || rules_.how() == reception::adaptive)
    return links_->wait_for_room(to);
  // Nobody else may be receiving.
  while (links_->is_congested(to)) {
    // Some time without the inbox, for whoever keeps the time wants it, too.
    for (int pauses = poll() ? 0 : 64; pauses != 0; --pauses) os::spin_pause();
  }
}

}  // namespace strata::cluster
