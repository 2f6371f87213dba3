// SPDX-License-Identifier: Apache-2.0
// Nodes that come to the running job and leave it, and this node when it does.

#include <exception>
#include <utility>

#include "cluster/engine/engine.hpp"
#include "os/own_thread.hpp"
#include "strata/error.hpp"

namespace strata::cluster {

bool engine::is_member(std::uint16_t node) const noexcept {
  return node < nodes_ && members_.works(node);
}

bool engine::is_known(std::uint16_t node) const noexcept {
  return node < nodes_ && members_.of(node) != standing::absent;
}

// ---- others ----

// For its sake nothing ends here: who cannot let it in, for want of memory or of a thread, does not
// say that it has, and the launcher tells who has not.
void engine::admit(node_id node, std::uint16_t host, const launch::address& where) {
  try {
    try_to_admit(node, host, where);
  } catch (const std::exception&) {
  }
}

void engine::try_to_admit(node_id node, std::uint16_t host, const launch::address& where) {
  if (node >= nodes_ || members_.of(node) != standing::absent) return;
  using way = entrance::way;
  way by = way::others;
  {
    const std::lock_guard handling(inbox_);
    // They come one after the other: whoever had a lower number and was not heard of never will.
    for (unsigned n = members_.begun(); n < node; ++n) {
      if (members_.of(static_cast<node_id>(n)) != standing::absent) continue;
      never_came(static_cast<node_id>(n));
      tell_who_waits_for(static_cast<node_id>(n));
    }
    by = door_->expect(node, host, where);
    if (networks_ != nullptr) {
      links_->expect(node, node);
      networks_->rerouting().expect(node);
    } else if (who_->by_networks()) {
      ways_.add(node, [this](node_id a, node_id b) { return who_->cost(a, b); });
      links_->expect(node, ways_.to(node).next);
    }
    members_.expect(node, by == way::memory);
    if (auto* const t = door_->admit_at_once(node, by)) links_->admit(node, *t);
  }
  visitor_.on_coming(node, host == line_->job().host_of.at(self_));
  // It connects when all have said so; whoever is late finds it in the kernel's queue.
  if (by == way::connection) let_in(node);
  if (networks_ == nullptr || self_ != 0) {
    line_->say(launch::word_to_launcher::admitted, node);
    return;
  }
  const std::lock_guard handling(inbox_);
  if (members_.of(node) == standing::coming) networks_->rerouting().ask_to_let_come(node);
}

// Or came, and left before this node knew it: nothing that is said to it is kept.
void engine::never_came(node_id node) {
  members_.set(node, standing::left);
  (void)links_->retire(node);
  if (networks_ != nullptr) networks_->on_left(node);
}

void engine::let_in(node_id node) {
  if (porter_.joinable()) porter_.join();  // one at a time, and the launcher knows when it is in
  porter_ = std::thread([this, node] {
    const os::own_thread here("strata-door");
    try {
      os::descriptor connection = door_->await(node);
      const std::lock_guard handling(inbox_);
      // By other nodes it may have said more than that it comes.
      if (members_.of(node) == standing::left) return;
      links_->admit(node, door_->admit(node, std::move(connection)));
      if (networks_ != nullptr) networks_->rerouting().on_connected();
    } catch (const std::exception&) {
      // Without a connection it cannot come, and says why to the launcher; or it has given up.
    }
  });
}

bool engine::is_no_loss(node_id node) {
  const bool is_none = membership_protocol_->is_no_loss(node);
  // Nor does one that was to come say a last word.
  if (members_.of(node) == standing::left) links_->on_lost(node);
  return is_none;
}

void engine::on_standing(node_id n) {
  const standing s = members_.of(n);
  const auto begun = static_cast<node_id>(members_.begun());
  network_worker_.nodes.store(begun, std::memory_order_relaxed);
  workers_.set_nodes(begun);
  if (s == standing::left) {
    (void)departures_.add(n);
    for (const message_copy& m : links_->retire(n)) protocols_->give_up(n, m);
    door_->forget(n);
    links_->forget_words_of(n);
    if (networks_ != nullptr) {
      networks_->on_left(n);
    } else {
      who_->forget(n);
    }
    tell_who_waits_for(n);
  }
  if (s == standing::present && self_ == 0) protocols_->failed.tell_comer(n);
  if (networks_ != nullptr) networks_->members_have_changed();
  protocols_->life.members_have_changed();
  stalls_->members_have_changed();
  protocols_->balance.members_have_changed();
  visitor_.members_have_changed();
  protocols_->quiet.node_is_idle();  // if it still is: what was given up counts
}

void engine::tell_who_waits_for(node_id node) {
  protocols_->data.on_left(node);
  visitor_.on_left(node);
}

void engine::put_aside(node_id node, message_copy m) {
  strays_.add({node, std::move(m)});
  wake_timekeeper();
}

// With the inbox.
void engine::give_up_strays() {
  for (const auto& [node, m] : strays_.take()) {
    if (broken_.load(std::memory_order_relaxed) || members_.of(node) != standing::left) continue;
    protocols_->give_up(node, m);
    // Who looked before it had left may have begun to wait after all who waited were told.
    tell_who_waits_for(node);
    protocols_->balance.members_have_changed();
  }
  protocols_->quiet.node_is_idle();  // if it still is: the counts are others
}

// ---- this node ----

void engine::on_entered() {
  line_->say(launch::word_to_launcher::entered, self_);
  if (networks_ != nullptr) networks_->rerouting().offer_to_forward();
  want_work();
}

void engine::ask_to_leave() {
  if (self_ == 0 || is_over()) return;
  if (networks_ == nullptr || membership_protocol_->is_leaving()) return begin_to_leave();
  networks_->rerouting().ask_to_be_spared();
}

void engine::on_spared(bool is) {
  if (!is_over()) is ? begin_to_leave() : refuse_to_leave();
}

void engine::begin_to_leave() {
  membership_protocol_->begin_to_leave();
  protocols_->shelf.close();
  visitor_.on_leaving();
  leaves_.store(true, std::memory_order_relaxed);
  wake_timekeeper();
}

// It may be asked again, when others are reached by others.
void engine::refuse_to_leave() { line_->say(launch::word_to_launcher::refuses, self_); }

void engine::try_to_leave() {
  const std::lock_guard handling(inbox_);
  if (has_asked_to_go_ || is_over()) return;
  protocols_->balance.hand_over();
  if (!nothing_holds()) return;
  has_asked_to_go_ = true;
  line_->say(launch::word_to_launcher::drained, self_);
}

bool engine::nothing_holds() {
  return !is_over() && workers_.is_idle() && workers_.held() + network_worker_.frames.live() == 0 &&
         !workers_.somebody_waits() && !protocols_->shelf.holds_something() &&
         !protocols_->balance.is_asking() && !protocols_->data.awaits_something() &&
         !visitor_.holds_something();
}

void engine::last_words() { visitor_.hand_over(); }

void engine::on_stay() {
  has_asked_to_go_ = false;
  line_->say(launch::word_to_launcher::stays, self_);
}

void engine::on_parted() {
  if (networks_ != nullptr) networks_->on_parted();
  for (const auto& t : transports_) t->has_left();
  leaves_.store(false, std::memory_order_relaxed);
  stopping_.store(true, std::memory_order_seq_cst);
  departures_.end(departures::cause::left);
}

}  // namespace strata::cluster
