// SPDX-License-Identifier: Apache-2.0
// Who comes and who leaves: what the program has for a node waits from the first word about its
// coming until there is a way and everybody counts it, and again from when it is about to leave. It
// goes on in the order in which it was posted, or back to who retires the node.
#include <mutex>
#include <utility>

#include "cluster/links/forwarding.hpp"
#include "cluster/links/links.hpp"
#include "cluster/words/retry_without_memory.hpp"

namespace strata::cluster {

void links::expect(node_id node, node_id next) {
  peer& p = peers_[node];
  back_room& b = p.back();
  const std::lock_guard lock(b.mutex);
  p.next = next;
  b.keeps_back = true;
}

void links::admit(node_id node, net::transport& way) {
  peers_[node].way.store(&way, std::memory_order_release);
}

void links::keep_back(node_id node, bool kept) {
  peer& p = peers_[node];
  back_room& b = p.back();
  std::unique_lock way_lock(b.way_mutex, std::defer_lock);
  if (ways_change_) way_lock.lock();
  {
    std::unique_lock lock(b.mutex);
    // Without a way nothing can go on: it has not come, whatever somebody says.
    b.keeps_back = kept || (p.next == node && way_to(node) == nullptr);
    if (b.keeps_back || !b.waiting.keeps_any()) return;
    if (p.next != node) {
      const auto all = retry_without_memory([&] { return b.waiting.take_kept(); });
      if (ways_change_) lock.unlock();  // see dispatch()
      // They are nowhere else any more.
      for (const message_copy& q : all) {
        retry_without_memory([&] {
          send(p.next, kind::forward, forwarding_head(q.k, self_, node, b.table, {}), q.payload);
        });
      }
      return;
    }
    retry_without_memory([&] { b.waiting.queue_kept(); });  // and nobody overtakes them
    p.queueing.store(true, std::memory_order_release);
  }
  way_to(node)->wake_sender();
}

std::deque<message_copy> links::retire(node_id node) {
  peer& p = peers_[node];
  back_room& b = p.back();
  const std::lock_guard lock(b.mutex);
  b.keeps_back = true;
  b.is_retired = outlives_connection(node);
  p.lost.store(true, std::memory_order_release);
  b.room.notify_all();
  return retry_without_memory([&] { return b.waiting.take_kept(); });
}

}  // namespace strata::cluster
