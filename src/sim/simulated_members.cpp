// SPDX-License-Identifier: Apache-2.0
// A simulated node when nodes come and go, and when it does: as
// cluster/engine/members.cpp.
#include <algorithm>
#include <utility>

#include "sim/simulated_job.hpp"

namespace strata::sim {
namespace {

constexpr std::int64_t leave_every_ns = 50'000;

}  // namespace

void simulated_node::expect(node_id n) {
  members_.expect(n, false);
  // Others may know it before, and say so; there is no scheduler that could be asked.
  worker_->nodes.store(static_cast<node_id>(n + 1), std::memory_order_relaxed);
  known_[n] = true;
  hosts_[n] = job_.host_of_[n];
  links_->expect(n, n);
  if (networks) networks->rerouting().expect(n);
  if (first_.reaches(n)) links_->admit(n, first_);
}

void simulated_node::on_spared(bool is) {
  is ? begin_to_leave() : std::exchange(job_.when_refused_[self_], nullptr)();
}

void simulated_node::on_entered() {
  std::exchange(job_.when_done_[self_], nullptr)();
  if (networks) networks->rerouting().offer_to_forward();
  protocols.balance.want_work();
}

void simulated_node::on_standing(node_id n) {
  const as_its_worker here(*this);
  const cluster::standing s = members_.of(n);
  if (s == cluster::standing::left) {
    for (const cluster::message_copy& m : links_->retire(n)) protocols.give_up(n, m);
    links_->forget_words_of(n);
    if (networks) networks->on_left(n);
    protocols.data.on_left(n);
    messenger.on_left(n);
  }
  if (s == cluster::standing::present && self_ == 0) protocols.failed.tell_comer(n);
  if (networks) networks->members_have_changed();
  protocols.life.members_have_changed();
  stalls.members_have_changed();
  protocols.balance.members_have_changed();
  messenger.members_have_changed();
}

void simulated_node::begin_to_leave() {
  const as_its_worker here(*this);
  membership_protocol.begin_to_leave();
  messenger.on_leaving();
  try_to_leave();
}

void simulated_node::try_to_leave() {
  if (parted_ || crashed_) return;
  if (!has_asked_to_go_) {
    as_worker([&] { protocols.balance.hand_over(); });
    if (nothing_holds()) {
      has_asked_to_go_ = true;
      job_.change([this] { membership_protocol.part(); });
    }
  }
  job_.in.at(job_.in.now_ns() + leave_every_ns, [this] { try_to_leave(); });
}

bool simulated_node::nothing_holds() {
  const std::int64_t dead = std::min(dead_frames_, worker_->events.frames());
  return is_idle() && worker_->frames.live() == dead && threads_ == 0 && stacks_.empty() &&
         !protocols.balance.is_asking() && !protocols.data.awaits_something() &&
         !messenger.holds_something();
}

void simulated_node::on_stay() {
  has_asked_to_go_ = false;
  job_.changed();
}

void simulated_node::on_parted() {
  if (networks) networks->on_parted();
  parted_ = true;
  job_.left_.push_back(self_);
  std::exchange(job_.when_done_[self_], nullptr)();
}

}  // namespace strata::sim
