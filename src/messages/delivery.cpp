// SPDX-License-Identifier: Apache-2.0
// A message comes to a port, from this process or from another node: it goes to the oldest receive
// that it fits, or is kept, or stays with its sender.
#include <sched.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>

#include "cluster/words/codec.hpp"
#include "cluster/words/retry_without_memory.hpp"
#include "messages/messenger.hpp"

namespace strata::messages {

// Where there is no memory nothing of it has come, and it may be tried again.
[[gnu::always_inline]] inline messenger::entered messenger::enter(port& p, endpoint_id target,
                                                                  delivery& d) {
  entered e;
  const std::lock_guard lock(p.lock);
  if (p.id != target) {
    const bool announced =
        std::find(p.announced.begin(), p.announced.end(), target) != p.announced.end();
    e.how = announced ? outcome::announced : outcome::closed;
    return e;
  }
  // Its sender counts as well. Before anything has changed here.
  if (d.charge != 0) {
    const port::account& a = account_of(p, d.info->source.node());
    if (d.charge > window_bytes - a.kept - a.to_give)
      throw cluster::malformed("a message that there is no room for");
  } else if (d.offer != nullptr && !has_sought(p, d.info->source.node())) {
    throw cluster::malformed("a message that nobody has sought");
  }
  // Read here and not by the caller: it was written just before in two parts, which no processor
  // hands on to one wide load; behind the lock it is in the cache.
  if (d.sender != nullptr) d.bytes = d.sender->from;
  const pattern from{d.info->source, d.info->tag};
  while ((e.matched = p.receives.take(from)) != nullptr) {
    request& r = *e.matched;
    r.at = request::place::nowhere;
    if (r.what != action::probe && r.has_room_for(d.info->bytes, d.offer == nullptr, d.whole))
      break;
    // Has ended, but not with the message.
    r.info = *d.info;
    const bool refused = r.refuses_larger;
    r.finish(r.what == action::probe ? outcome::done : r.without_room());
    if (refused) {
      e.how = outcome::closed;
      return e;
    }
  }
  if (e.matched != nullptr) {
    count(p, d, *e.matched);
  } else if (d.sender != nullptr && broken_.load(std::memory_order_acquire)) {
    // Nobody waits here who has not seen that a node is lost. Partner: on_lost().
    e.how = outcome::lost;
    return e;
  } else {
    keep(p, d);  // nothing below throws
  }
  if (d.charge == 0) return e;
  port::account& a = account_of(p, d.info->source.node());
  if (e.matched != nullptr) {
    a.to_give += d.charge;
  } else {
    e.gets_full = a.kept < full_bytes && a.kept + d.charge >= full_bytes;
    keeps(p, a, a.kept + d.charge);
  }
  e.notice = notice_for(p, d.info->source.node(), false);
  return e;
}

outcome messenger::deliver(endpoint_id target, delivery& d) {
  port* const p = ports_.find(target);
  if (p == nullptr) return outcome::closed;
  // Of what comes from another node nobody knows any more who could send it again.
  const auto wait = [&] {
    if (d.sender != nullptr) throw;  // hears that there is no memory
    sched_yield();
  };
  const entered e = cluster::retry_without_memory([&] { return enter(*p, target, d); }, wait);
  if (e.how != outcome::done) return e.how;
  post_notice(target, e.notice);
  if (e.gets_full) [[unlikely]]
    seek_for_all(*p, target, d.info->source.node());
  if (e.matched == nullptr) return outcome::done;
  const bool in_handler = d.sender == nullptr;
  d.sender = nullptr;  // ends with this call, whatever becomes of the message
  complete(d, *e.matched, in_handler);
  return outcome::done;
}

// With the port's lock. Where it throws nothing has changed.
void messenger::keep(port& p, delivery& d) {
  // Besides the arrival what the allocator adds to it and to its bytes where they are apart, and
  // its part of the indexes, whose lists hold two entries or more each when they are made.
  constexpr std::size_t allocator_adds = 16 + 24;
  constexpr std::size_t indexes = (pattern_shapes - 1) * sizeof(match_list<arrival, 0>) / 2;
  static_assert(sizeof(arrival) + allocator_adds + indexes <= kept_for_message);
  auto a = std::make_unique_for_overwrite<arrival>();
  a->info = *d.info;
  a->charge = d.charge;
  a->is_kept = false;
  if (d.offer != nullptr) {
    a->body = *d.offer;
  } else if (d.sender == nullptr) {
    a->keep(d.bytes);
    p.counted.bytes_copied += d.info->bytes;
  } else if (d.sender->what == action::send && p.local_bytes < local_window_bytes &&
             (d.whole != nullptr || d.info->bytes <= eager_bytes_max)) {
    if (d.whole != nullptr) {
      a->body = std::move(*d.whole);
    } else {
      a->keep(d.bytes);
      p.counted.bytes_copied += d.info->bytes;
    }
    p.local_bytes += d.info->bytes + charge_for_message;
    d.sender->gives_way = p.local_turns.take();
    d.sender = nullptr;  // it has ended
  } else {
    // Where its sender has it, who waits until it is received.
    const arrival* const before = p.messages.last();
    if (before != nullptr && before->sender() != nullptr && before->info.source != a->info.source)
      p.local_turns.wanted();
    a->body = d.sender;
    d.sender->at = request::place::messages;
    d.sender->target = &p;
    d.sender->left = a.get();
  }
  p.messages.add(*a);
  (void)a.release();  // the port's
}

void messenger::send_within(request& r) {
  delivery d{.info = &r.info, .whole = r.whole, .sender = &r};
  const outcome how = deliver(r.info.target, d);
  if (how != outcome::done) return r.finish_unseen(how);
  if (d.sender == nullptr) r.finish_unseen(outcome::done);
}

bool messenger::send_to_waiting(endpoint_id source, endpoint_id target, message_tag tag,
                                std::span<const std::byte> bytes) noexcept {
  if (target.node() != self_ || broken_.load(std::memory_order_acquire)) return false;
  port* const p = ports_.find(target);
  if (p == nullptr) return false;
  p->lock.lock();
  request* const r = p->receives.only();
  if (r == nullptr || p->id != target || !r->takes({source, tag}, bytes.size())) {
    p->lock.unlock();
    return false;
  }
  p->receives.remove_only();
  r->at = request::place::nowhere;
  ++p->counted.from_here;
  if (r->looks == nullptr) {
    p->counted.bytes_copied += bytes.size();
  } else {
    ++p->counted.handed_over;
  }
  p->lock.unlock();
  r->info = {source, target, tag, bytes.size()};
  r->take(bytes);
  r->finish(outcome::done);
  return true;
}

}  // namespace strata::messages
