// SPDX-License-Identifier: Apache-2.0
// A messenger and its endpoints, from their beginning to their end; and by which way a message
// goes.
#include "messages/messenger.hpp"

#include <new>

#include "strata/error.hpp"

namespace strata::messages {

using std::memory_order_relaxed;

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
    p.receives.give_memory_back();
    messages = p.messages.take_all();
    messages.for_each([](arrival& a) {
      if (request* const sender = a.sender()) sender->at = request::place::nowhere;
    });
    p.local_bytes = 0;
    accounts.swap(p.accounts);
    p.full_accounts = 0;
    p.local_turns = {};
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

}  // namespace strata::messages
