// SPDX-License-Identifier: Apache-2.0
#include "cluster/links.hpp"

#include <algorithm>
#include <iterator>

#include "cluster/detours.hpp"
#include "cluster/forwarding.hpp"
#include "net/causality.hpp"
#include "strata/detail/check.hpp"

namespace strata::cluster {
namespace {

// What may be queued for one node before the program has to wait.
constexpr std::size_t queued_bytes_max = std::size_t{1} << 20;
// And what may be under way to a neighbour whose connection may break: as much as a fast network
// holds.
constexpr std::size_t given_bytes_max = std::size_t{8} << 20;
constexpr std::int64_t leave_every_ns = 10'000'000;

}  // namespace

links::links(node_id self, const std::vector<net::transport*>& transports, const routes& ways,
             traits what)
    : self_(self), elastic_(what.elastic), ways_change_(what.ways_change) {
  set_table(0, ways);
  for (unsigned i = 0; i < ways.nodes(); ++i) {
    const auto node = static_cast<node_id>(i);
    auto p = std::make_unique<peer>();
    p->next = ways.to(node).next;
    // A connection may be of use for other ways.
    for (net::transport* const t : transports) {
      const bool is_wanted = p->next == node || (ways_change_ && node != self);
      if (!is_wanted || !t->reaches(node)) continue;
      if (p->way == nullptr)
        p->way = t;
      else if (ways_change_ && p->spare == nullptr)
        p->spare = t;
    }
    const bool is_there = node == self || p->next != node || p->way != nullptr;
    STRATA_CHECK(is_there || elastic_, i, self);
    p->keeps_back = !is_there;
    peers_.push_back(std::move(p));
  }
}

void links::expect(node_id node, node_id next) {
  peer& p = *peers_[node];
  const std::lock_guard lock(p.mutex);
  p.next = next;
  p.keeps_back = true;
}

void links::admit(node_id node, net::transport& way) {
  peers_[node]->way.store(&way, std::memory_order_release);
}

void links::keep_back(node_id node, bool kept) {
  peer& p = *peers_[node];
  std::unique_lock way_lock(p.way_mutex, std::defer_lock);
  if (ways_change_) way_lock.lock();
  {
    std::unique_lock lock(p.mutex);
    // Without a way nothing can go on: it has not come, whatever somebody says.
    p.keeps_back = kept || (p.next == node && way_to(node) == nullptr);
    if (p.keeps_back || p.kept.empty()) return;
    const std::deque<queued> all = std::exchange(p.kept, {});
    if (p.next != node) {
      if (ways_change_) lock.unlock();  // see dispatch()
      for (const queued& q : all)
        send(p.next, kind::forward, forwarding_head(q.k, self_, node, p.table, {}), q.payload);
      return;
    }
    p.queue.insert(p.queue.end(), all.begin(), all.end());
    p.queueing.store(true, std::memory_order_release);
  }
  way_to(node)->wake_sender();
}

std::vector<links::kept_message> links::retire(node_id node) {
  peer& p = *peers_[node];
  const std::lock_guard lock(p.mutex);
  p.keeps_back = true;
  p.lost.store(true, std::memory_order_release);
  std::vector<kept_message> all(std::make_move_iterator(p.kept.begin()),
                                std::make_move_iterator(p.kept.end()));
  p.kept.clear();
  p.room.notify_all();
  return all;
}

// ---- ways ----

void links::set_table(std::uint32_t number, const routes& ways) {
  table& t = tables_[number % tables_.size()];
  t.number = number;
  t.next.clear();
  for (unsigned n = 0; n < ways.nodes(); ++n)
    t.next.push_back(ways.to(static_cast<node_id>(n)).next);
}

void links::change_way(node_id node, node_id next, std::uint32_t number,
                       std::span<const std::byte> last_word) {
  peer& p = *peers_[node];
  const std::lock_guard lock(p.way_mutex);
  if (!last_word.empty() && !is_lost(node)) dispatch(p, node, kind::way_ends, last_word, {});
  p.table = number;
  const node_id before = p.next.exchange(next, std::memory_order_relaxed);
  if (before == next) return;
  // Whoever waits there for room does so for something else now.
  peer& old = *peers_[before];
  const std::lock_guard waiting(old.mutex);
  old.room.notify_all();
}

bool links::post(node_id to, kind k, std::span<const std::byte> head,
                 std::span<const std::byte> body) {
  STRATA_CHECK(to != self_ && to < peers_.size(), to, self_);
  peer& p = *peers_[to];
  if (!ways_change_) [[likely]]
    return dispatch(p, to, k, head, body);
  const std::lock_guard lock(p.way_mutex);
  return dispatch(p, to, k, head, body);
}

inline bool links::dispatch(peer& p, node_id to, kind k, std::span<const std::byte> head,
                            std::span<const std::byte> body) {
  const node_id next = p.next.load(std::memory_order_relaxed);
  if (next == to) [[likely]]
    return send(to, k, head, body);
  // As in send(): what is kept back is not sent to those who forward it either. This lock comes
  // before theirs.
  std::unique_lock lock(p.mutex, std::defer_lock);
  if (elastic_) lock.lock();
  if (p.keeps_back && can_be_kept_back(k)) {
    if (p.lost.load(std::memory_order_relaxed)) return false;
    p.kept.push_back(copy_of(k, head, body));
    return true;
  }
  // That neighbour may be reached by this node while ways change; what keeps the order is
  // way_mutex.
  if (ways_change_ && lock.owns_lock()) lock.unlock();
  return send(next, kind::forward, forwarding_head(k, self_, to, p.table, head), body);
}

net::corked links::cork(node_id to) const noexcept {
  const node_id next = peers_[to]->next.load(std::memory_order_relaxed);
  net::transport* const way = way_to(next);
  return way == nullptr ? net::corked() : net::corked(*way, next);
}

bool links::post_directly(node_id to, kind k, std::span<const std::byte> head,
                          std::span<const std::byte> body) {
  const net::leaving_message message(body);
  peer& p = *peers_[to];
  net::transport* const way = p.way.load(std::memory_order_acquire);
  if (way == nullptr || p.queueing.load(std::memory_order_acquire) || is_lost(to)) return false;
  return way->try_send(to, header_of(self_, to, k), head, message.body()) !=
         net::send_outcome::would_block;
}

void links::forward(const forwarded_head& what, std::span<const std::byte> payload) {
  const table& ways = tables_[what.ways % tables_.size()];
  if (ways.number != what.ways || ways.next.empty())
    throw malformed("something to forward by ways that nobody goes");
  const node_id next = ways.next[what.destination];
  if (next == self_) throw malformed("something to forward to where no way leads");
  forwarded_.fetch_add(1, std::memory_order_relaxed);
  send(next, kind::forward, std::as_bytes(std::span(&what, 1)), payload);
  tell_if_too_much(next, {what.source, what.destination});
}

void links::pass_on(node_id next, std::span<const std::byte> head,
                    std::span<const std::byte> payload, const flow& f) {
  send(next, kind::detour, head, payload);
  tell_if_too_much(next, f);
}

void links::tell_if_too_much(node_id next, const flow& f) {
  peer& p = *peers_[next];
  if (p.queued_bytes.load(std::memory_order_relaxed) <= queued_bytes_max) return;
  std::uint16_t number = 0;
  {
    const std::lock_guard lock(p.mutex);
    std::uint16_t& last = p.told[f];
    if (p.queue.empty() || last % 2 != 0) return;
    number = ++last;
  }
  tell(f, number);
}

void links::tell(const flow& f, std::uint16_t number) {
  const held_head head{f.second, number};
  post(f.first, kind::hold, std::as_bytes(std::span(&head, 1)), {});
}

void links::hold(node_id gateway, const held_head& word) {
  peer& there = *peers_[word.destination];
  peer& next = *peers_[there.next];
  const std::lock_guard lock(next.mutex);
  std::uint16_t& last = there.words[gateway];
  // Modulo 2^16: who empties a queue and who fills it speak from different threads.
  if (static_cast<std::int16_t>(static_cast<std::uint16_t>(word.number - last)) <= 0) return;
  last = word.number;
  look_whether_held(there);
  next.room.notify_all();
}

void links::look_whether_held(peer& there) {
  there.held.store(std::any_of(there.words.begin(), there.words.end(),
                               [](const auto& w) { return w.second % 2 != 0; }),
                   std::memory_order_relaxed);
}

void links::forget_words_of(node_id gateway) {
  for (const auto& there : peers_) {
    peer& next = *peers_[there->next];
    const std::lock_guard lock(next.mutex);
    if (there->words.erase(gateway) == 0) continue;
    look_whether_held(*there);
    next.room.notify_all();
  }
}

bool links::send(node_id to, kind k, std::span<const std::byte> head,
                 std::span<const std::byte> body) {
  const net::leaving_message message(body);
  peer& p = *peers_[to];
  // Who keeps something back must know that nobody is just sending; where nobody comes or goes the
  // transport's own lock is enough.
  std::unique_lock lock(p.mutex, std::defer_lock);
  if (elastic_ || ways_change_) lock.lock();
  net::transport* const way = p.way.load(std::memory_order_acquire);
  // Others may know of a comer before this node has its connection.
  const bool kept = elastic_ && p.keeps_back && (way == nullptr || can_be_kept_back(k));
  if (!kept && !p.queueing.load(std::memory_order_acquire)) [[likely]] {
    switch (way->try_send(to, header_of(self_, to, k), head, message.body())) {
      case net::send_outcome::sent:
      case net::send_outcome::staged:  // the transport sees to it
      case net::send_outcome::lost:    // whoever depends on it hears of the loss
        if (ways_change_ && way->about().may_break && counts_for_connection(k))
          keep_copy(p, copy_of(k, head, body));
        return true;
      case net::send_outcome::would_block:
        break;
    }
  }
  if (p.lost.load(std::memory_order_acquire)) {
    if (kept) return false;
    // One that has left may still have to hear something, until it closes the connection.
    if (!elastic_) return true;
  }
  queued q = copy_of(k, head, body);
  if (!lock.owns_lock()) lock.lock();
  p.queued_bytes.fetch_add(q.payload.size() + sizeof(net::header), std::memory_order_relaxed);
  if (kept) {
    p.kept.push_back(std::move(q));
    return true;
  }
  p.queue.push_back(std::move(q));
  p.queueing.store(true, std::memory_order_release);
  lock.unlock();
  way->wake_sender();
  return true;
}

bool links::is_congested(node_id to) const noexcept {
  if (peers_[to]->held.load(std::memory_order_relaxed)) return true;
  const peer& p = *peers_[peers_[to]->next];
  return (p.queued_bytes.load(std::memory_order_relaxed) > queued_bytes_max ||
          p.given_bytes.load(std::memory_order_relaxed) > given_bytes_max) &&
         !p.lost.load(std::memory_order_relaxed);
}

void links::wait_for_room(node_id to) {
  const std::atomic<node_id>& way = peers_[to]->next;
  while (is_congested(to)) {
    const node_id next = way;
    peer& p = *peers_[next];
    std::unique_lock lock(p.mutex);
    p.room.wait(lock, [&] { return !is_congested(to) || way != next; });
  }
}

bool links::send_queued(node_id to, peer& p) {
  released_flows released;
  if (p.queueing.load(std::memory_order_acquire)) {
    std::unique_lock lock(p.mutex);
    if (p.stands != peer::connection::open) {
      lock.unlock();
      return send_around(p);
    }
    // Not before: another may just have taken its place.
    net::transport& way = *way_to(to);
    bool flushed = false;
    while (!p.queue.empty()) {
      queued& q = p.queue.front();
      switch (way.try_send(to, header_of(self_, to, q.k), q.payload, {})) {
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
      p.queued_bytes.fetch_sub(q.payload.size() + sizeof(net::header), std::memory_order_relaxed);
      if (ways_change_ && way.about().may_break && counts_for_connection(q.k))
        keep_copy(p, std::move(q));
      p.queue.pop_front();
      flushed = false;
    }
    p.queueing.store(false, std::memory_order_release);
    p.room.notify_all();
    released = release(p);
    lock.unlock();
    if (goes_around_.load(std::memory_order_relaxed)) wake_who_go_around();
  }
  for (const auto& [f, number] : released) tell(f, number);
  return way_to(to)->flush(to);
}

void links::run_sender(net::transport& t) {
  for (;;) {
    // First: what was posted before stop() is seen below. Partner: stop().
    const bool leaving = stopping_.load(std::memory_order_acquire);
    bool done = true;
    for (std::size_t i = 0; i < peers_.size(); ++i) {
      peer& p = *peers_[i];
      if (way_to(static_cast<node_id>(i)) == &t && i != self_)
        done &= send_queued(static_cast<node_id>(i), p);
    }
    if (leaving && done) return;
    t.wait_for_room(leaving ? leave_every_ns : net::wait_forever_ns);
  }
}

// ---- connections that end ----

void links::keep_copy(peer& p, message_copy m) {
  p.given.keep(std::move(m));
  p.given_bytes.store(p.given.bytes(), std::memory_order_relaxed);
}

void links::has_come(node_id neighbour, kind k, std::size_t bytes) {
  peer& p = *peers_[neighbour];
  if (counts_for_connection(k) && p.come.add(bytes)) confirm(neighbour, p);
}

void links::confirm(node_id neighbour, peer& p) {
  const std::uint64_t come = p.come.confirm();
  send(neighbour, kind::confirmed, std::as_bytes(std::span(&come, 1)), {});
}

void links::on_confirmed(node_id neighbour, std::uint64_t come) {
  peer& p = *peers_[neighbour];
  const std::lock_guard lock(p.mutex);
  // Its last word about a connection may come by a detour.
  if (p.stands != peer::connection::open) return;
  p.given.confirm(come);
  p.given_bytes.store(p.given.bytes(), std::memory_order_relaxed);
  p.room.notify_all();
}

links::trouble links::confirm_all(bool listening) {
  trouble found;
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    const auto n = static_cast<node_id>(i);
    if (n == self_ || !outlives_connection(n) || is_lost(n)) continue;
    peer& p = *peers_[i];
    {
      const std::lock_guard lock(p.mutex);
      if (p.is_too_far) found.too_far.push_back(n);
      if (p.stands != peer::connection::open) continue;
      if (listening && p.given.is_silent()) found.silent.push_back(n);
    }
    if (!p.come.is_confirmed()) confirm(n, p);
  }
  return found;
}

std::uint64_t links::close(node_id neighbour) {
  peer& p = *peers_[neighbour];
  goes_around_.store(true, std::memory_order_relaxed);
  const std::lock_guard lock(p.mutex);
  p.stands = peer::connection::closed;
  p.queueing.store(true, std::memory_order_release);
  way_to(neighbour)->drop(neighbour);
  return p.come.confirm();
}

void links::queue_rest(peer& p, std::uint64_t come) {
  p.given.confirm(come);
  std::deque<message_copy> all = p.given.take();
  p.given_bytes.store(0, std::memory_order_relaxed);
  for (const message_copy& m : all)
    p.queued_bytes.fetch_add(m.payload.size() + sizeof(net::header), std::memory_order_relaxed);
  std::move(p.queue.begin(), p.queue.end(), std::back_inserter(all));
  p.queue = std::move(all);
}

bool links::say_by_spare(node_id neighbour, kind k, std::span<const std::byte> payload) {
  net::transport* const spare = peers_[neighbour]->spare;
  if (spare == nullptr) return false;
  const auto outcome = spare->try_send(neighbour, header_of(self_, neighbour, k), payload, {});
  return outcome == net::send_outcome::sent || outcome == net::send_outcome::staged;
}

void links::drop_spare(node_id neighbour) noexcept {
  if (net::transport* const spare = std::exchange(peers_[neighbour]->spare, nullptr))
    spare->drop(neighbour);
}

void links::go_on(node_id neighbour, std::uint64_t come) {
  peer& p = *peers_[neighbour];
  if (is_lost(neighbour)) return;
  {
    const std::lock_guard lock(p.mutex);
    queue_rest(p, come);
    p.way.store(std::exchange(p.spare, nullptr), std::memory_order_release);
    p.stands = peer::connection::open;
  }
  // It finds out whether there is anything in the queue.
  way_to(neighbour)->wake_sender();
}

void links::go_by(node_id neighbour, std::uint64_t come, std::vector<node_id> way) {
  peer& p = *peers_[neighbour];
  if (is_lost(neighbour)) return;
  {
    const std::lock_guard lock(p.mutex);
    queue_rest(p, come);
    p.detour = std::move(way);
    p.stands = peer::connection::replaced;
  }
  way_to(neighbour)->wake_sender();
}

links::released_flows links::release(peer& p) {
  released_flows all;
  for (auto& [f, last] : p.told) {
    if (last % 2 != 0) all.emplace_back(f, ++last);
  }
  return all;
}

// By the one thread that empties the queue: so nothing overtakes anything, though the mutex is not
// held while the next neighbour's is.
bool links::send_around(peer& p) {
  for (bool has_sent = false;; has_sent = true) {
    queued q{};
    node_id first = 0;
    std::vector<std::byte> head;
    {
      std::unique_lock lock(p.mutex);
      // As long as nobody knows how to go on nothing can be sent.
      if (p.stands != peer::connection::replaced) return true;
      if (p.queue.empty()) {
        p.room.notify_all();
        const released_flows released = release(p);
        lock.unlock();
        for (const auto& [f, number] : released) tell(f, number);
        // Others may go by this one.
        if (has_sent) wake_who_go_around();
        return true;
      }
      first = p.detour.front();
      // When the node ends, nobody may make room any more.
      if (peers_[first]->queued_bytes.load(std::memory_order_relaxed) > queued_bytes_max &&
          !stopping_.load(std::memory_order_relaxed))
        return false;
      q = std::move(p.queue.front());
      p.queue.pop_front();
      p.queued_bytes.fetch_sub(q.payload.size() + sizeof(net::header), std::memory_order_relaxed);
      head = detour_head(self_, q.k, p.detour);
      if (head.size() + q.payload.size() > net::payload_bytes_max) p.is_too_far = true;
    }
    if (head.size() + q.payload.size() <= net::payload_bytes_max)
      send(first, kind::detour, head, q.payload);
  }
}

// The next on a detour has room again.
void links::wake_who_go_around() {
  for (std::size_t n = 0; n < peers_.size(); ++n) {
    peer& p = *peers_[n];
    if (n == self_ || p.queued_bytes.load(std::memory_order_relaxed) == 0) continue;
    bool waits = false;
    {
      const std::lock_guard lock(p.mutex);
      waits = p.stands == peer::connection::replaced && !p.queue.empty();
    }
    if (waits) way_to(static_cast<node_id>(n))->wake_sender();
  }
}

void links::stop() noexcept { stopping_.store(true, std::memory_order_release); }

std::string links::describe_waits() const {
  std::string text;
  for (std::size_t n = 0; n < peers_.size(); ++n) {
    if (const std::size_t bytes = peers_[n]->queued_bytes.load(std::memory_order_relaxed))
      text +=
          "  " + std::to_string(bytes) + " bytes wait for room at node " + std::to_string(n) + "\n";
  }
  return text;
}

void links::on_lost(node_id node) {
  peer& p = *peers_[node];
  p.lost.store(true, std::memory_order_release);
  if (net::transport* const way = way_to(node)) way->drop(node);
  const std::lock_guard lock(p.mutex);
  p.queue.clear();
  p.kept.clear();
  (void)p.given.take();
  p.given_bytes.store(0, std::memory_order_relaxed);
  p.queued_bytes.store(0, std::memory_order_relaxed);
  p.room.notify_all();
  p.told.clear();
}

void links::stop_holding() noexcept {
  for (std::size_t n = 0; n < peers_.size(); ++n) {
    if (n == self_) continue;
    peer& next = *peers_[peers_[n]->next];
    const std::lock_guard lock(next.mutex);
    peers_[n]->words.clear();
    peers_[n]->held.store(false, std::memory_order_relaxed);
    next.room.notify_all();
  }
}

bool links::is_lost(node_id node) const noexcept {
  return peers_[node]->lost.load(std::memory_order_acquire);
}

}  // namespace strata::cluster
