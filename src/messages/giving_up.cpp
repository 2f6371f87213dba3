// SPDX-License-Identifier: Apache-2.0
// Sends and receives that are given up: at once where they wait on this node.
//
// Of a send whose envelope waits on another node for a receive, this node asks for it back. Whoever
// handles messages there takes it out of its port, gives its room back, and says so. The program
// there has no part in that, so it ends however long nobody receives.
//
// Where it has been matched already, or its endpoint has ended, there is nothing to say: who
// fetches it ends it, or has refused it. The word comes behind the offer, as both are posted by one
// thread, or one after the other under the lane's lock.
#include <memory>
#include <mutex>
#include <vector>

#include "messages/messenger.hpp"

namespace strata::messages {

using cluster::kind;

bool messenger::cancel(request& r) {
  std::unique_ptr<arrival> left;
  std::vector<request*> ended;
  if (r.is_receive()) {
    const std::lock_guard lock(r.mine->lock);
    if (r.at != request::place::receives) return false;
    r.mine->receives.remove(r);
    r.at = request::place::nowhere;
  } else if (r.on != nullptr) {
    const std::lock_guard lock(r.on->lock);
    if (r.at != request::place::lane) return false;
    r.on->waiting.remove(r);
    r.at = request::place::nowhere;
    // There may be room for those behind it, and nobody else will say so.
    ended = send_waiting(*r.on);
  } else if (r.target != nullptr) {
    const std::lock_guard lock(r.target->lock);
    if (r.at != request::place::messages) return false;
    left.reset(r.left);
    r.target->messages.remove(*left);
    r.at = request::place::nowhere;
  } else {
    return false;
  }
  r.finish(outcome::cancelled);
  for (request* const one : ended) one->finish(outcome::done);
  return true;
}

void messenger::recall(request& r) noexcept {
  if (r.is_receive()) return;  // whose info somebody may be writing
  const endpoint_id target = r.info.target;
  if (target.node() == self_) return;
  std::uint64_t offer = 0;
  {
    std::unique_lock<detail::spin_lock> lock;
    if (r.on != nullptr) lock = std::unique_lock(r.on->lock);
    if (r.at != request::place::offered) return;
    offer = r.order;
  }
  post(target.node(), kind::recall, recall_head{target.bits(), offer});
}

void messenger::on_recall(net::node_id from, cluster::reader& r) {
  const auto head = r.take<recall_head>();
  r.end();
  const auto target = endpoint_id::from_bits(head.target);
  if (target.node() != self_ || head.offer == 0)
    throw cluster::malformed("a message that is taken back was sent elsewhere");
  port* const p = ports_.find(target);
  if (p == nullptr) return;
  std::unique_ptr<arrival> taken;
  room_notice notice;
  {
    const std::lock_guard lock(p->lock);
    if (p->id != target) return;
    taken.reset(p->messages.find_if([&](const arrival& a) {
      const arrival::offered* const offer = a.offer();
      return offer != nullptr && offer->id == head.offer && a.info.source.node() == from;
    }));
    if (taken == nullptr) return;
    p->messages.remove(*taken);
    notice = give_charge_back(*p, *taken);
  }
  post_notice(target, notice);
  refuse(from, target, head.offer, end_word::recalled);
}

}  // namespace strata::messages
