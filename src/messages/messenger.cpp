// SPDX-License-Identifier: Apache-2.0
// Endpoints, and messages within the process.
#include "messages/messenger.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include "cluster/work/split_phase.hpp"
#include "os/clock.hpp"
#include "sched/scheduler.hpp"
#include "strata/detail/join.hpp"
#include "strata/detail/worker.hpp"
#include "strata/error.hpp"

namespace strata::messages {

using std::memory_order_relaxed;

namespace {
// Of a stack, for whatever a message makes happen.
constexpr std::size_t room_for_handling = std::size_t{64} << 10;
}  // namespace

messenger::messenger()
    : serial_([] {
        static std::atomic<std::uint64_t> made{0};
        return made.fetch_add(1, memory_order_relaxed) + 1;
      }()) {}

messenger::~messenger() {
  ports_.for_each([](port& p) { p.messages.for_each([](arrival& a) { delete &a; }); });
}

void messenger::throw_loss() const { std::rethrow_exception(loss_); }

// ---- endpoints ----

port& messenger::open() {
  port* const p = ports_.open(self_, *this);
  if (p == nullptr) throw error("no more endpoints: a node has at most 16 million");
  return *p;
}

void messenger::close(endpoint_id id, port& p, outcome how) {
  std::vector<port::account> accounts;
  // Linked by what they were in the port by: this takes no memory.
  match_list<request, 0> receives;
  match_list<arrival, 0> messages;
  {
    const std::lock_guard lock(p.lock);
    if (p.id != id) return;
    p.id = endpoint_id();
    try {
      if (how == outcome::announced) p.announced.push_back(id);
    } catch (const std::bad_alloc&) {  // who comes later hears no more than that it is closed
    }
    p.receives.for_each([&](request& r) {
      p.receives.remove(r);
      r.at = request::place::nowhere;
      receives.append(r);
    });
    p.messages.for_each([&](arrival& a) {
      p.messages.remove(a);
      if (request* const sender = a.sender()) sender->at = request::place::nowhere;
      messages.append(a);
    });
    p.local_bytes = 0;
    accounts.swap(p.accounts);
    p.full_accounts = 0;
  }
  receives.for_each([](request& r) { r.finish(outcome::closed); });
  messages.for_each([&](arrival& a) {
    if (request* const sender = a.sender()) sender->finish(how);
    if (const arrival::offered* const offer = a.offer())
      refuse(a.info.source.node(), id, offer->id, how);
    delete &a;
  });
  for (std::size_t n = 0; n < accounts.size(); ++n) {
    // Somebody there may wait for room.
    if (accounts[n].known) refuse(static_cast<net::node_id>(n), id, 0, how);
  }
  // Last, as nobody else may keep the messenger.
  if (ports_.give_back(p)) delete this;
}

// ---- matching ----

outcome messenger::deliver(endpoint_id target, delivery& d) {
  port* const p = ports_.find(target);
  if (p == nullptr) return outcome::closed;
  request* matched = nullptr;
  room_notice notice;
  bool gets_full = false;
  {
    const std::lock_guard lock(p->lock);
    if (p->id != target) {
      const bool announced =
          std::find(p->announced.begin(), p->announced.end(), target) != p->announced.end();
      return announced ? outcome::announced : outcome::closed;
    }
    // Its sender counts as well. Before anything has changed here.
    if (d.charge != 0) {
      const port::account& a = account_of(*p, d.info->source.node());
      if (d.charge > window_bytes - a.kept - a.to_give)
        throw cluster::malformed("a message that there is no room for");
    } else if (d.offer != nullptr && !has_sought(*p, d.info->source.node())) {
      throw cluster::malformed("a message that nobody has sought");
    }
    // Read here and not by the caller: it was written just before in two parts, which no processor
    // hands on to one wide load; behind the lock it is in the cache.
    if (d.sender != nullptr) d.bytes = d.sender->from;
    const pattern from{d.info->source, d.info->tag};
    while ((matched = p->receives.take(from)) != nullptr) {
      matched->at = request::place::nowhere;
      if (matched->what != action::probe && matched->has_room_for(d.info->bytes, d.whole)) break;
      // Has ended, but not with the message.
      matched->info = *d.info;
      const bool refused = matched->refuses_larger;
      matched->finish(matched->what == action::probe ? outcome::done : matched->without_room());
      if (refused) return outcome::closed;
    }
    // Nobody waits here who has not seen that a node is lost. Partner: on_lost().
    if (matched == nullptr && d.sender != nullptr && broken_.load(std::memory_order_acquire))
      return outcome::lost;
    if (d.charge != 0) {
      port::account& a = account_of(*p, d.info->source.node());
      if (matched != nullptr) {
        a.to_give += d.charge;
      } else {
        gets_full = a.kept < full_bytes && a.kept + d.charge >= full_bytes;
        keeps(*p, a, a.kept + d.charge);
      }
      notice = notice_for(*p, d.info->source.node(), false);
    }
    if (matched != nullptr) {
      count(*p, d, *matched);
    } else {
      keep(*p, d);
    }
  }
  post_notice(target, notice);
  if (gets_full) [[unlikely]]
    seek_for_all(*p, target, d.info->source.node());
  if (matched == nullptr) return outcome::done;
  const bool in_handler = d.sender == nullptr;
  d.sender = nullptr;  // ends with this call, whatever becomes of the message
  hand_over(d, *matched, in_handler);
  return outcome::done;
}

// With the port's lock.
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
    d.sender = nullptr;  // it has ended
  } else {
    // Where its sender has it, who waits until it is received.
    a->body = d.sender;
    d.sender->at = request::place::messages;
    d.sender->target = &p;
    d.sender->left = a.get();
  }
  p.messages.add(*a);
  (void)a.release();  // the port's
}

// With the port's lock.
void messenger::count(port& p, const delivery& d, const request& receive) noexcept {
  const bool moves = d.whole != nullptr && receive.whole != nullptr;
  if (!moves) p.counted.bytes_copied += d.bytes.size();
  if (d.info->source.node() != self_) return;
  ++p.counted.from_here;
  if (moves && !d.is_kept) ++p.counted.handed_over;
  if (!moves && d.is_kept) ++p.counted.copied_twice;
}

void messenger::copy_into(request& receive, delivery& d) {
  if (receive.whole != nullptr && d.whole != nullptr) {
    *receive.whole = std::move(*d.whole);
    return;
  }
  if (receive.whole != nullptr) {
    receive.whole->assign(d.bytes.begin(), d.bytes.end());
  } else if (!d.bytes.empty()) {
    std::memcpy(receive.into.data(), d.bytes.data(), d.bytes.size());
  }
}

void messenger::hand_over(delivery& d, request& receive, bool in_handler) {
  receive.info = *d.info;
  if (d.offer != nullptr) return begin_fetch(*d.info, *d.offer, receive, in_handler);
  copy_into(receive, d);
  if (d.sender != nullptr) d.sender->finish(outcome::done);
  receive.finish(outcome::done);
}

// ---- the program's side ----

void messenger::check_target(endpoint_id to) const {
  if (to.node() == self_) return;
  if (mail_ == nullptr || to.node() >= mail_->nodes())
    throw misuse_error("a message to endpoint " + text_of(to) + ": this job has no such node");
}

void messenger::send(request& r) {
  const endpoint_id to = r.info.target;
  if (broken_.load(std::memory_order_acquire)) return r.finish_unseen(outcome::lost);
  if (to.node() == self_) return send_within(r);
  check_target(to);
  // Its endpoints have ended with it.
  if (mail_->members().of(to.node()) == cluster::standing::left)
    return r.finish_unseen(outcome::closed);
  send_to_node(r);
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
  if (r == nullptr || p->id != target || !r->takes_copy_of({source, tag}, bytes.size())) {
    p->lock.unlock();
    return false;
  }
  p->receives.remove_only();
  r->at = request::place::nowhere;
  ++p->counted.from_here;
  p->counted.bytes_copied += bytes.size();
  p->lock.unlock();
  r->info = {source, target, tag, bytes.size()};
  if (!bytes.empty()) std::memcpy(r->into.data(), bytes.data(), bytes.size());
  r->finish(outcome::done);
  return true;
}

void messenger::refuse_source(net::node_id node) {
  throw misuse_error("a message from any endpoint of node " + std::to_string(node) +
                     ": this job has no such node");
}

void messenger::receive(request& r) {
  port& p = *r.mine;
  p.lock.lock();
  // Most come before their message does.
  const bool is_first = p.id == r.info.target && p.messages.empty() && p.full_accounts == 0 &&
                        !broken_.load(std::memory_order_acquire) && !is_gone(r.wanted.source);
  if (!is_first) return receive_locked(r);
  try {
    p.receives.add(r);
  } catch (...) {  // no memory
    p.lock.unlock();
    throw;
  }
  r.at = request::place::receives;
  // Nobody waits for the lock for longer than for another one.
  if (r.waits_at_once && r.wait_entered()) return;
  p.lock.unlock();
}

void messenger::receive_locked(request& r) {
  port& p = *r.mine;
  const endpoint_id id = r.info.target;
  arrival* a = nullptr;
  delivery d;
  room_notice notice;
  {
    std::unique_lock lock(p.lock, std::adopt_lock);
    if (p.id != id) {
      lock.unlock();
      return r.finish_unseen(outcome::closed);
    }
    a = p.messages.find(r.wanted);
    if (a == nullptr) {
      const bool is_lost = broken_.load(std::memory_order_acquire);
      if (is_lost || is_gone(r.wanted.source)) {
        lock.unlock();
        return r.finish_unseen(is_lost ? outcome::lost : outcome::left);
      }
      p.receives.add(r);
      news heard;
      try {
        heard = news_for(p, r.wanted, true);
      } catch (...) {  // no memory
        p.receives.remove(r);
        throw;
      }
      r.at = request::place::receives;
      lock.unlock();
      return post_news(id, heard);
    }
    if (r.what == action::probe || !r.has_room_for(a->info.bytes, a->whole())) {
      r.info = a->info;
      lock.unlock();
      return r.finish_unseen(r.what == action::probe ? outcome::done : r.without_room());
    }
    p.messages.remove(*a);
    d = {.info = &a->info,
         .bytes = a->bytes(),
         .whole = a->whole(),
         .is_kept = a->is_kept,
         .sender = a->sender(),
         .offer = a->offer()};
    if (d.sender != nullptr) d.sender->at = request::place::nowhere;
    if (a->charge != 0) {
      notice = give_charge_back(p, *a);
    } else if (d.sender == nullptr && d.offer == nullptr) {  // a copy from here
      p.local_bytes -= a->info.bytes + charge_for_message;
    }
    count(p, d, r);
  }
  post_notice(id, notice);
  const std::unique_ptr<arrival> owned(a);
  hand_over(d, r, false);
}

// What is handed over while its receive waits goes where it is wanted, with no copy kept, and
// nobody has to be suspended and woken for it.
void messenger::look_for(const request& r) noexcept {
  // What an idle worker would do, but from here: about as long as an answer takes.
  constexpr unsigned empty_looks_max = 16;
  // Others' traffic may never end, but a wait with a deadline has to.
  constexpr unsigned found_max = 64;
  if (!is_far(r) || detail::stack_bytes_left() < room_for_handling) return;
  const net::node_id from = r.other_end() ? r.other_end().node() : self_;
  unsigned found = 0;
  // Others that are ready come first: who is sent one message after the other would keep the
  // worker.
  for (unsigned empty = 0; empty < empty_looks_max && detail::nothing_else_is_ready(); ++empty) {
    switch (mail_->look_for_message(from)) {
      case cluster::mailer::sight::useless:
        return;
      case cluster::mailer::sight::nothing:
        os::spin_pause();
        break;
      case cluster::mailer::sight::found:
        if (++found == found_max) return;
        empty = 0;
        break;
    }
    if (r.is_done()) return;
  }
}

void messenger::look_now_and_then() const noexcept {
  constexpr unsigned every = 16;
  static thread_local unsigned asked = 0;
  const detail::worker& here = detail::this_worker();
  if (here.owner == nullptr || mail_ == nullptr || ++asked % every != 0) return;
  if (detail::stack_bytes_left() < room_for_handling) return;
  if (const detail::scheduler::visit n(*here.owner);
      n && n->workers_look->load(memory_order_relaxed))
    n->look();
}

std::optional<message_info> messenger::probe(port& p, endpoint_id id, const pattern& wanted) {
  news heard;
  {
    const std::lock_guard lock(p.lock);
    if (p.id != id) return std::nullopt;
    if (const arrival* const a = p.messages.find(wanted)) return a->info;
    if (broken_.load(std::memory_order_acquire)) throw_loss();
    if (is_gone(wanted.source)) throw cluster::has_left(wanted.source.node());
    heard = news_for(p, wanted, false);
  }
  post_news(id, heard);
  return std::nullopt;
}

}  // namespace strata::messages
