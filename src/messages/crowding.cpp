// SPDX-License-Identifier: Apache-2.0
// A program whose threads send to many endpoints has room at each of them, and may still send more
// than a network carries. So where more is queued for a neighbour than should be, or a gateway says
// so, the lanes to the nodes behind it send nothing more, and their senders wait, not their
// workers. When that is over each in turn sends what waits in it, as much as may be queued.
//
// Whoever finds more than should be says so afterwards (links), and a lane is held back under the
// mutex under which that is looked for: so a lane that is held back is let go.
#include <algorithm>
#include <memory>
#include <mutex>
#include <vector>

#include "cluster/words/retry_without_memory.hpp"
#include "messages/messenger.hpp"

namespace strata::messages {

using std::memory_order_relaxed;

void messenger::on_congestion() noexcept {
  const std::lock_guard lock(held_mutex_);
  crowded_.store(true, memory_order_relaxed);
}

bool messenger::is_held_back(lane& l) noexcept {
  const net::node_id node = l.target.node();
  const std::lock_guard lock(held_mutex_);
  if (!mail_->is_congested(node)) {
    // Else those who are held back would wait for as long as others send.
    const auto found = held_.find(node);
    if (l.is_let_go || found == held_.end()) return false;
  }
  if (!l.is_held)
    cluster::retry_without_memory([&] { held_[node].push_back(l.shared_from_this()); });
  l.is_held = true;
  return true;
}

void messenger::on_room_made() {
  for (;;) {
    std::shared_ptr<lane> l;
    {
      const std::lock_guard lock(held_mutex_);
      const auto found = std::find_if(held_.begin(), held_.end(), [this](const auto& of_node) {
        return !mail_->is_congested(of_node.first);
      });
      if (found == held_.end()) {
        if (crowded_.load(memory_order_relaxed) && held_.empty()) {
          bool is_any = false;
          for (net::node_id n = 0; n < nodes_ && !is_any; ++n)
            is_any = n != self_ && mail_->is_congested(n);
          crowded_.store(is_any, memory_order_relaxed);
        }
        return;
      }
      l = std::move(found->second.front());
      found->second.pop_front();
      if (found->second.empty()) held_.erase(found);
    }
    std::vector<request*> ended;
    {
      const std::lock_guard lock(l->lock);
      l->is_held = false;
      l->is_let_go = true;
      ended = send_waiting(*l);
      l->is_let_go = false;
    }
    for (request* const one : ended) one->finish(outcome::done);
  }
}

}  // namespace strata::messages
