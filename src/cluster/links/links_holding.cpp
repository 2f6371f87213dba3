// SPDX-License-Identifier: Apache-2.0
// Words about room, between a gateway and the sources of what it passes on: where more waits than
// should, each source is told once to wait, and once to go on when that queue is empty.
#include <mutex>
#include <optional>

#include "cluster/links/links.hpp"
#include "cluster/words/retry_without_memory.hpp"

namespace strata::cluster {

// What waits has been taken in: of that nobody is to hear that it failed.
void links::tell_of_too_much(node_id next, const flow& f) {
  back_room& b = peers_[next].back();
  const auto word = retry_without_memory([&]() -> std::optional<std::uint16_t> {
    const std::lock_guard lock(b.mutex);
    if (b.waiting.empty()) return std::nullopt;
    return b.told.hold(f);
  });
  if (word) tell(f, *word);
}

void links::tell(const flow& f, std::uint16_t number) {
  const held_head head{f.second, number};
  retry_without_memory([&] { post(f.first, kind::hold, std::as_bytes(std::span(&head, 1)), {}); });
}

void links::hold(node_id gateway, reader r) {
  const auto word = r.take<held_head>();
  if (word.destination >= peers_.size()) throw malformed("a word about a way that nobody goes");
  peer& there = peers_[word.destination];
  back_room& b = there.back();
  back_room& next = peers_[there.next].back();
  bool waits = false;
  {
    const std::lock_guard lock(next.mutex);
    if (!b.heard.hear(gateway, word.number)) return;
    waits = b.heard.say_wait();
    there.held.store(waits, std::memory_order_relaxed);
    next.room.notify_all();
  }
  if (waits)
    congestion_begins();
  else
    congestion_may_be_over();
}

void links::forget_words_of(node_id gateway) {
  for (peer& there : peers_) {
    back_room* const b = there.back_if_any();
    if (b == nullptr) continue;
    back_room& next = peers_[there.next].back();
    const std::lock_guard lock(next.mutex);
    if (!b->heard.forget(gateway)) continue;
    there.held.store(b->heard.say_wait(), std::memory_order_relaxed);
    next.room.notify_all();
  }
  congestion_may_be_over();
}

void links::stop_waiting() noexcept {
  nobody_waits_.store(true, std::memory_order_relaxed);
  for (std::size_t n = 0; n < peers_.size(); ++n) {
    peer& there = peers_[n];
    back_room* const b = there.back_if_any();
    if (b == nullptr) continue;
    back_room& next = peers_[there.next].back();
    const std::lock_guard lock(next.mutex);
    b->heard.clear();
    there.held.store(false, std::memory_order_relaxed);
    next.room.notify_all();
  }
}

}  // namespace strata::cluster
