// SPDX-License-Identifier: Apache-2.0
// A receive or a probe comes to a port: it gets the oldest message that fits it, or waits there.
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "cluster/work/split_phase.hpp"
#include "messages/messenger.hpp"
#include "strata/error.hpp"

namespace strata::messages {

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
    if (r.what == action::probe ||
        !r.has_room_for(a->info.bytes, a->offer() == nullptr, a->whole())) {
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
  complete(d, r, false);
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
