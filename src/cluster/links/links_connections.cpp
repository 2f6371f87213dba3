// SPDX-License-Identifier: Apache-2.0
// Connections that end before their nodes do: whatever was given to one and has not come, and all
// that waits and follows, goes by another one, or around by others, in the same order and once.
#include <mutex>
#include <utility>

#include "cluster/links/detours.hpp"
#include "cluster/links/links.hpp"
#include "cluster/words/retry_without_memory.hpp"

namespace strata::cluster {

void links::has_come(node_id neighbour, kind k, std::size_t bytes) {
  back_room& b = peers_[neighbour].back();
  if (counts_for_connection(k) && b.come.add(bytes)) confirm(neighbour, b);
}

void links::confirm(node_id neighbour, back_room& b) {
  const std::uint64_t come = b.come.confirm();
  // It counts as confirmed.
  retry_without_memory(
      [&] { send(neighbour, kind::confirmed, std::as_bytes(std::span(&come, 1)), {}); });
}

void links::on_confirmed(node_id neighbour, std::uint64_t come) {
  back_room& b = peers_[neighbour].back();
  {
    const std::lock_guard lock(b.mutex);
    // Its last word about a connection may come by a detour.
    if (b.stands != back_room::connection::open) return;
    b.given.confirm(come);
    b.room.notify_all();
  }
  congestion_may_be_over();
}

links::trouble links::confirm_all(bool listening) {
  trouble found;
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    const auto n = static_cast<node_id>(i);
    if (n == self_ || !outlives_connection(n) || is_over(n)) continue;
    back_room* const b = peers_[i].back_if_any();
    if (b == nullptr) continue;
    {
      const std::lock_guard lock(b->mutex);
      if (b->is_too_far) found.too_far.push_back(n);
      if (b->stands != back_room::connection::open) continue;
      if (listening && b->given.is_silent()) found.silent.push_back(n);
    }
    if (!b->come.is_confirmed()) confirm(n, *b);
  }
  return found;
}

std::uint64_t links::close(node_id neighbour) {
  peer& p = peers_[neighbour];
  back_room& b = p.back();
  goes_around_.store(true, std::memory_order_relaxed);
  const std::lock_guard lock(b.mutex);
  b.stands = back_room::connection::closed;
  p.queueing.store(true, std::memory_order_release);
  way_to(neighbour)->drop(neighbour);
  return b.come.confirm();
}

void links::queue_rest(back_room& b, std::uint64_t come) {
  b.given.confirm(come);
  while (b.given.keeps_any()) {
    message_copy last = b.given.take_last();  // which is nowhere else
    retry_without_memory([&] { b.waiting.put_in_front(std::move(last)); });
  }
}

bool links::say_by_spare(node_id neighbour, kind k, std::span<const std::byte> payload) {
  if (!has_spare(neighbour)) return false;
  net::transport* const spare = peers_[neighbour].back_if_any()->spare;
  const auto outcome = spare->try_send(neighbour, header_of(self_, neighbour, k), payload, {});
  // As long as it is the spare no sender looks after it.
  if (outcome == net::send_outcome::staged) (void)spare->flush(neighbour);
  return outcome == net::send_outcome::sent || outcome == net::send_outcome::staged;
}

void links::drop_spare(node_id neighbour) noexcept {
  if (has_spare(neighbour))
    std::exchange(peers_[neighbour].back_if_any()->spare, nullptr)->drop(neighbour);
}

void links::go_on(node_id neighbour, std::uint64_t come) {
  if (is_over(neighbour)) return;
  peer& p = peers_[neighbour];
  back_room& b = p.back();
  {
    const std::lock_guard lock(b.mutex);
    queue_rest(b, come);
    p.way.store(std::exchange(b.spare, nullptr), std::memory_order_release);
    b.stands = back_room::connection::open;
  }
  // It finds out whether there is anything in the queue.
  way_to(neighbour)->wake_sender();
}

void links::go_by(node_id neighbour, std::uint64_t come, std::vector<node_id> way) {
  if (is_over(neighbour)) return;
  back_room& b = peers_[neighbour].back();
  {
    const std::lock_guard lock(b.mutex);
    queue_rest(b, come);
    b.detour = std::move(way);
    b.stands = back_room::connection::replaced;
  }
  way_to(neighbour)->wake_sender();
}

void links::go_by_another(node_id neighbour, std::vector<node_id> way) {
  if (is_over(neighbour)) return;
  back_room& b = peers_[neighbour].back();
  {
    const std::lock_guard lock(b.mutex);
    if (!goes_around(b)) return;
    b.detour = std::move(way);
  }
  way_to(neighbour)->wake_sender();
}

void links::end_detour(node_id neighbour, kind k, std::span<const std::byte> payload) {
  back_room& b = peers_[neighbour].back();
  {
    const std::lock_guard lock(b.mutex);
    b.waiting.push(copy_of(k, payload, {}));
    b.last_by_detour = b.waiting.size();
    b.stands = back_room::connection::ending;
  }
  way_to(neighbour)->wake_sender();
}

bool links::has_ended_detour(node_id neighbour) const {
  back_room* const b = peers_[neighbour].back_if_any();
  if (b == nullptr) return false;
  const std::lock_guard lock(b->mutex);
  return b->stands == back_room::connection::ending && b->last_by_detour == 0;
}

void links::begin_anew(node_id neighbour, net::transport& way) {
  if (is_over(neighbour)) return;
  peer& p = peers_[neighbour];
  back_room& b = p.back();
  {
    const std::lock_guard lock(b.mutex);
    b.given.begin_anew();
    b.come = {};
    b.detour.clear();
    p.way.store(&way, std::memory_order_release);
    b.stands = back_room::connection::open;
  }
  way.wake_sender();
}

void links::pass_on(node_id next, std::span<const std::byte> head,
                    std::span<const std::byte> payload, const flow& f) {
  // As forward().
  retry_without_memory([&] { send(next, kind::detour, head, payload); });
  tell_if_too_much(next, f);
}

// By the one thread that empties the queue: so nothing overtakes anything, though the mutex is not
// held while the next neighbour's is.
bool links::send_around(back_room& b) {
  for (bool has_sent = false;; has_sent = true) {
    message_copy m{};
    node_id first = 0;
    std::vector<std::byte> head;
    {
      std::unique_lock lock(b.mutex);
      // As long as nobody knows how to go on nothing can be sent.
      if (!goes_around(b)) return true;
      if (b.waiting.empty()) {
        b.room.notify_all();
        const auto released = retry_without_memory([&] { return b.told.release(); });
        lock.unlock();
        for (const auto& [f, number] : released) tell(f, number);
        congestion_may_be_over();
        // Others may go by this one.
        if (has_sent) wake_who_go_around();
        return true;
      }
      first = b.detour.front();
      // When the node ends, nobody may make room any more.
      if (queued_bytes(first) > queued_bytes_max && !stopping_.load(std::memory_order_relaxed))
        return false;
      // Before it is taken out: nobody else knows of it then.
      head =
          retry_without_memory([&] { return detour_head(self_, b.waiting.front().k, b.detour); });
      m = b.waiting.pop();
      if (b.stands == back_room::connection::ending) --b.last_by_detour;
      if (head.size() + m.payload.size() > net::payload_bytes_max) b.is_too_far = true;
    }
    if (head.size() + m.payload.size() <= net::payload_bytes_max)
      retry_without_memory([&] { send(first, kind::detour, head, m.payload); });
  }
}

// The next on a detour has room again.
void links::wake_who_go_around() {
  for (std::size_t n = 0; n < peers_.size(); ++n) {
    if (n == self_ || queued_bytes(static_cast<node_id>(n)) == 0) continue;
    back_room& b = peers_[n].back();
    bool waits = false;
    {
      const std::lock_guard lock(b.mutex);
      waits = goes_around(b) && !b.waiting.empty();
    }
    if (waits) way_to(static_cast<node_id>(n))->wake_sender();
  }
}

}  // namespace strata::cluster
