// SPDX-License-Identifier: Apache-2.0
#include "cluster/links/links.hpp"

#include <sched.h>

#include <memory>
#include <new>
#include <optional>

#include "cluster/links/forwarding.hpp"
#include "cluster/words/retry_without_memory.hpp"
#include "net/causality.hpp"
#include "os/clock.hpp"
#include "strata/detail/check.hpp"

namespace strata::cluster {
namespace {

// What may be under way to a neighbour whose connection may break: as much as a fast network
// holds.
constexpr std::size_t given_bytes_max = std::size_t{8} << 20;
constexpr std::int64_t leave_every_ns = 10'000'000;

}  // namespace

links::links(node_id self, const std::vector<net::transport*>& transports, const routes& ways,
             traits what)
    : self_(self), elastic_(what.elastic), ways_change_(what.ways_change), peers_(ways.nodes()) {
  tables_.set(0, ways);
  for (unsigned i = 0; i < ways.nodes(); ++i) {
    const auto node = static_cast<node_id>(i);
    peer& p = peers_[i];
    p.next = ways.to(node).next;
    // A connection may be of use for other ways.
    for (net::transport* const t : transports) {
      const bool is_wanted = p.next == node || (ways_change_ && node != self);
      if (!is_wanted || !t->reaches(node)) continue;
      if (p.way == nullptr)
        p.way = t;
      else if (ways_change_ && !has_spare(node))
        p.back().spare = t;
    }
    const bool is_there = node == self || p.next != node || p.way != nullptr;
    STRATA_CHECK(is_there || elastic_, i, self);
    if (!is_there) p.back().keeps_back = true;
  }
}

links::~links() {
  for (peer& p : peers_) delete p.back_if_any();
}

// Two may need it at once: one of them has made it in vain.
links::back_room& links::peer::make_back() {
  auto made = std::make_unique<back_room>();
  back_room* seen = nullptr;
  // Release: what it is. Partner: back_if_any().
  if (rest.compare_exchange_strong(seen, made.get(), std::memory_order_acq_rel,
                                   std::memory_order_acquire))
    return *made.release();
  return *seen;
}

void links::change_way(node_id node, node_id next, std::uint32_t number,
                       std::span<const std::byte> last_word) {
  peer& p = peers_[node];
  back_room& b = p.back();
  {
    const std::lock_guard lock(b.way_mutex);
    if (!last_word.empty() && !is_lost(node)) dispatch(p, node, kind::way_ends, last_word, {});
    b.table = number;
    const node_id before = p.next.exchange(next, std::memory_order_relaxed);
    if (before == next) return;
    // Whoever waits there for room does so for something else now.
    back_room& old = peers_[before].back();
    const std::lock_guard waiting(old.mutex);
    old.room.notify_all();
  }
  congestion_may_be_over();
}

bool links::post(node_id to, kind k, std::span<const std::byte> head,
                 std::span<const std::byte> body) {
  STRATA_CHECK(to != self_ && to < peers_.size(), to, self_);
  peer& p = peers_[to];
  if (!ways_change_) [[likely]]
    return dispatch(p, to, k, head, body);
  const std::lock_guard lock(p.back().way_mutex);
  return dispatch(p, to, k, head, body);
}

inline bool links::dispatch(peer& p, node_id to, kind k, std::span<const std::byte> head,
                            std::span<const std::byte> body) {
  const node_id next = p.next.load(std::memory_order_relaxed);
  if (next == to) [[likely]]
    return send(to, k, head, body);
  // As in send(): what is kept back is not sent to those who forward it either. This lock comes
  // before theirs.
  back_room& b = p.back();
  std::unique_lock lock(b.mutex, std::defer_lock);
  if (elastic_) lock.lock();
  if (b.keeps_back && can_be_kept_back(k)) {
    if (p.lost.load(std::memory_order_relaxed)) return false;
    b.waiting.keep(copy_of(k, head, body));
    return true;
  }
  // That neighbour may be reached by this node while ways change; what keeps the order is
  // way_mutex.
  if (ways_change_ && lock.owns_lock()) lock.unlock();
  return send(next, kind::forward, forwarding_head(k, self_, to, b.table, head), body);
}

net::corked links::cork(node_id to, std::span<const std::byte> lasting) const noexcept {
  const node_id next = peers_[to].next.load(std::memory_order_relaxed);
  net::transport* const way = way_to(next);
  return way == nullptr ? net::corked() : net::corked(*way, next, lasting);
}

bool links::post_directly(node_id to, kind k, std::span<const std::byte> head,
                          std::span<const std::byte> body) {
  const net::leaving_message message(body);
  const peer& p = peers_[to];
  net::transport* const way = p.way.load(std::memory_order_acquire);
  if (way == nullptr || p.queueing.load(std::memory_order_acquire) || is_lost(to)) return false;
  return way->try_send(to, header_of(self_, to, k), head, message.body()) !=
         net::send_outcome::would_block;
}

void links::forward(const forwarded_head& what, std::span<const std::byte> payload) {
  const node_id next = tables_.next(what.ways, what.destination);
  if (next == self_) throw malformed("something to forward to where no way leads");
  forwarded_.fetch_add(1, std::memory_order_relaxed);
  // Nobody else knows of it any more.
  retry_without_memory(
      [&] { send(next, kind::forward, std::as_bytes(std::span(&what, 1)), payload); });
  tell_if_too_much(next, {what.source, what.destination});
}

std::optional<cluster::forwarded> links::unwrap(std::span<const std::byte> payload,
                                                const membership& members) {
  const cluster::forwarded f =
      take_forwarded(reader(payload), self_, static_cast<node_id>(peers_.size()));
  const standing s = members.of(f.what.source);
  // No way leads there for an answer, or for a word about too much.
  if (s == standing::absent) throw malformed("something to forward of a node that there is not");
  if (f.what.destination == self_) return f;
  // Who has left may go by ways that are over, and has nothing to say that counts.
  if (s != standing::left || knows(f.what.ways)) forward(f.what, f.payload);
  return std::nullopt;
}

bool links::send(node_id to, kind k, std::span<const std::byte> head,
                 std::span<const std::byte> body) {
  const net::leaving_message message(body);
  peer& p = peers_[to];
  // Who keeps something back must know that nobody is just sending; where nobody comes or goes the
  // transport's own lock is enough.
  std::unique_lock<std::mutex> lock;
  if (elastic_ || ways_change_) lock = std::unique_lock(p.back().mutex);
  net::transport* const way = p.way.load(std::memory_order_acquire);
  // Others may know of a comer before this node has its connection.
  const bool kept = elastic_ && p.back().keeps_back && (way == nullptr || can_be_kept_back(k));
  std::optional<message_copy> not_sent;
  if (!kept && !p.queueing.load(std::memory_order_acquire)) [[likely]] {
    // Before it is given: of one that has gone the caller must not hear that there is no memory.
    const bool counts = ways_change_ && way->about().may_break && counts_for_connection(k);
    if (counts) p.back().given.keep(copy_of(k, head, body));
    auto done = net::send_outcome::would_block;
    try {
      done = way->try_send(to, header_of(self_, to, k), head, message.body());
    } catch (...) {
      if (counts) (void)p.back().given.take_last();
      throw;
    }
    switch (done) {
      case net::send_outcome::sent:
      case net::send_outcome::staged:  // the transport sees to it
      case net::send_outcome::lost:    // whoever depends on it hears of the loss
        if (counts && p.back().given.bytes() > given_bytes_max) congestion_begins();
        return true;
      case net::send_outcome::would_block:
        break;
    }
    if (counts) not_sent = p.back().given.take_last();
  }
  if (p.lost.load(std::memory_order_acquire)) {
    if (kept) return false;
    // One that has left may still have to hear something, until it closes the connection.
    if (!elastic_) return true;
  }
  message_copy m = not_sent ? std::move(*not_sent) : copy_of(k, head, body);
  back_room& b = p.back();
  if (!lock.owns_lock()) lock = std::unique_lock(b.mutex);
  if (kept) {
    b.waiting.keep(std::move(m));
    return true;
  }
  b.waiting.push(std::move(m));
  p.queueing.store(true, std::memory_order_release);
  const bool is_too_much = b.waiting.bytes() > queued_bytes_max;
  lock.unlock();
  if (is_too_much) congestion_begins();
  way->wake_sender();
  return true;
}

bool links::is_congested(node_id to) const noexcept {
  if (peers_[to].held.load(std::memory_order_relaxed)) return true;
  const peer& p = peers_[peers_[to].next];
  const back_room* const b = p.back_if_any();
  return b != nullptr &&
         (b->waiting.bytes() > queued_bytes_max || b->given.bytes() > given_bytes_max) &&
         !p.lost.load(std::memory_order_relaxed) && !nobody_waits_.load(std::memory_order_relaxed);
}

void links::wait_for_room(node_id to) {
  const std::atomic<node_id>& way = peers_[to].next;
  while (is_congested(to)) {
    const node_id next = way;
    back_room& b = peers_[next].back();
    std::unique_lock lock(b.mutex);
    b.room.wait(lock, [&] { return !is_congested(to) || way != next; });
  }
}

bool links::send_queued(node_id to, peer& p) {
  words_told::words released;
  if (p.queueing.load(std::memory_order_acquire)) {
    back_room& b = p.back();
    std::unique_lock lock(b.mutex);
    if (b.stands != back_room::connection::open) {
      lock.unlock();
      return send_around(b);
    }
    // Not before: another may just have taken its place.
    net::transport& way = *way_to(to);
    bool flushed = false;
    while (!b.waiting.empty()) {
      const message_copy& q = b.waiting.front();
      auto done = net::send_outcome::would_block;
      try {
        done = way.try_send(to, header_of(self_, to, q.k), q.payload, {});
      } catch (const std::bad_alloc&) {
        // The sender's thread, who can tell nobody, comes back at once: whoever would give some
        // memory back may wait for this lock.
        lock.unlock();
        sched_yield();
        way.wake_sender();
        return false;
      }
      switch (done) {
        case net::send_outcome::would_block:
          // There may be room once what is staged has gone.
          if (flushed || !way.flush(to)) return false;
          flushed = true;
          continue;
        case net::send_outcome::staged:
        case net::send_outcome::sent:
        case net::send_outcome::lost:
          break;
      }
      message_copy sent = b.waiting.pop();
      if (ways_change_ && way.about().may_break && counts_for_connection(sent.k))
        retry_without_memory([&] { b.given.keep(std::move(sent)); });
      flushed = false;
    }
    p.queueing.store(false, std::memory_order_release);
    b.room.notify_all();
    released = retry_without_memory([&] { return b.told.release(); });
    const bool is_too_much = b.given.bytes() > given_bytes_max;
    lock.unlock();
    if (goes_around_.load(std::memory_order_relaxed)) wake_who_go_around();
    if (is_too_much) congestion_begins();
    congestion_may_be_over();
  }
  for (const auto& [f, number] : released) tell(f, number);
  // What was held back may be queued again.
  return way_to(to)->flush(to) && !p.queueing.load(std::memory_order_acquire);
}

bool links::send_queued(net::transport& t) {
  bool done = true;
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    if (way_to(static_cast<node_id>(i)) == &t && i != self_)
      done &= send_queued(static_cast<node_id>(i), peers_[i]);
  }
  return done;
}

void links::run_sender(net::transport& t) {
  for (;;) {
    // First: what was posted before stop() is seen below. Partner: stop().
    const bool leaving = stopping_.load(std::memory_order_acquire);
    if (send_queued(t) && leaving) return;
    if (leaving && os::now_ns() >= leave_until_ns_) return;
    t.wait_for_room(leaving ? leave_every_ns : net::wait_forever_ns);
  }
}

void links::stop(std::int64_t limit_ns) noexcept {
  if (limit_ns >= 0) leave_until_ns_ = os::now_ns() + limit_ns;
  stopping_.store(true, std::memory_order_release);
}

std::string links::describe_waits() const {
  std::string text;
  for (std::size_t n = 0; n < peers_.size(); ++n) {
    if (const std::size_t bytes = queued_bytes(static_cast<node_id>(n)))
      text +=
          "  " + std::to_string(bytes) + " bytes wait for room at node " + std::to_string(n) + "\n";
  }
  return text;
}

void links::on_lost(node_id node) {
  peer& p = peers_[node];
  back_room& b = p.back();
  b.is_retired = false;
  p.lost.store(true, std::memory_order_release);
  if (net::transport* const way = way_to(node)) way->drop(node);
  const std::lock_guard lock(b.mutex);
  b.waiting.clear();
  b.given.clear();
  b.room.notify_all();
  b.told.clear();
}

bool links::is_lost(node_id node) const noexcept {
  return peers_[node].lost.load(std::memory_order_acquire);
}

}  // namespace strata::cluster
