// SPDX-License-Identifier: Apache-2.0
// A messenger when it joins its job, when nodes come and go, and when one is lost: who waits for
// what will not come any more hears so.
#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "messages/current_messenger.hpp"
#include "messages/messenger.hpp"
#include "strata/detail/deadline.hpp"
#include "strata/detail/join.hpp"
#include "strata/membership.hpp"

namespace strata::messages {

using cluster::kind;
using std::memory_order_relaxed;

void messenger::join(cluster::mailer& mail, cluster::local_node& here, cluster::work_counts& counts,
                     const std::vector<bool>& same_host) {
  mail_ = &mail;
  here_ = &here;
  counts_ = &counts;
  self_ = mail.self();
  nodes_ = mail.nodes();
  readable_ = std::make_unique<std::atomic<bool>[]>(same_host.size());
  writes_here_ = std::make_unique<std::atomic<bool>[]>(same_host.size());
  for (std::size_t n = 0; n < same_host.size(); ++n)
    on_coming(static_cast<net::node_id>(n), same_host[n]);
}

void messenger::on_coming(net::node_id node, bool same_host) {
  readable_[node].store(same_host, memory_order_relaxed);
  writes_here_[node].store(same_host, memory_order_relaxed);
}

void messenger::on_left(net::node_id node) {
  ended_requests ended, refused = lanes_.end_all_to(node, outcome::closed);
  refused.for_each([](request& r) { r.finish(outcome::closed); });
  // What has come from there is received already, or waits.
  ports_.for_each([&](port& p) {
    const std::lock_guard lock(p.lock);
    p.receives.for_each([&](request& r) {
      if (!r.wanted.source || r.wanted.source.node() != node) return;
      p.receives.remove(r);
      r.at = request::place::nowhere;
      ended.append(r);
    });
  });
  {
    const std::lock_guard lock(transfers_mutex_);
    std::erase_if(offers_, [&](const auto& one) {
      const open_offer& o = one.second;
      const bool ends = o.send->info.target.node() == node && !o.is_in_use();
      if (ends) ended.append(*o.send);
      return ends;
    });
    std::erase_if(fetches_, [&](const auto& one) {
      const fetch& f = one.second;
      const bool ends = f.from == node && f.moves == nullptr;
      if (ends) ended.append(*f.receive);
      return ends;
    });
    choices_.erase(node);
  }
  ended.for_each([](request& r) { r.finish(outcome::left); });
  stops.on_left(node);
  bests.on_left(node);
  names.forget_those_of(node);
  names.members_have_changed();
}

void messenger::on_leaving() { names.begin_to_leave(); }

void messenger::members_have_changed() noexcept {
  // Release: who is a member. Partner: await_other_members().
  member_changes_.fetch_add(1, std::memory_order_release);
  detail::unpark(&member_changes_, UINT32_MAX);
}

std::optional<std::vector<node_id_t>> messenger::await_other_members(
    std::span<const node_id_t> known, std::int64_t deadline_ns) {
  struct {
    const std::atomic<std::uint32_t>* changes;
    std::uint32_t seen;
  } question{&member_changes_, 0};
  // Asked with the address's queue locked: whoever changes something afterwards finds who waits.
  const auto nothing_has_changed = [](void* q) {
    const auto& it = *static_cast<const decltype(question)*>(q);
    return it.changes->load(memory_order_relaxed) == it.seen;
  };
  for (;;) {
    question.seen = member_changes_.load(std::memory_order_acquire);
    std::vector<node_id_t> there = members();
    if (is_leaving() || !std::equal(there.begin(), there.end(), known.begin(), known.end()))
      return there;
    if (detail::deadline_now() >= deadline_ns) return std::nullopt;
    (void)waits.park({.what = "a node to come or go",
                      .address = &member_changes_,
                      .still = nothing_has_changed,
                      .argument = &question,
                      .deadline_ns = deadline_ns});
  }
}

bool messenger::holds_something() {
  bool open = false;
  ports_.for_each([&](port& p) {
    const std::lock_guard lock(p.lock);
    open |= p.id != endpoint_id();
  });
  // What is better than that is said when it has been heard.
  const bool has_more_to_tell = bests.any_of(
      [this](auto& known) { return has(known.home) && known.here.reports.has_more(); });
  // Or tokens are on their way whose arguments are still to be fetched from here.
  return open || has_more_to_tell || large_values->size() != 0;
}

void messenger::hand_over() {
  for (const std::vector<std::byte>& piece : names.pack(cluster::part_bytes_max))
    mail_->post(0, kind::names, piece);
}

net::node_id messenger::home_of(std::size_t hash) const noexcept {
  if (mail_ == nullptr) return 0;
  const cluster::membership& members = mail_->members();
  const auto home = static_cast<net::node_id>(hash % members.founders());
  // Node 0 inherits the names of those who leave, and stays to the end.
  return members.of(home) == cluster::standing::left ? net::node_id{0} : home;
}

messenger::ended_requests messenger::take_waiting(const std::exception_ptr& error) {
  loss_ = error;
  // Release: the loss. Partner: the acquire loads of whoever begins. Under each lock below, so that
  // nobody waits who has not seen it.
  broken_.store(true, std::memory_order_seq_cst);
  // Before anybody hears that its send is lost, and uses its memory for something else.
  offers_mark_.revoke();
  ended_requests ended;
  match_list<arrival, 0> gone;
  ports_.for_each([&](port& p) {
    const std::lock_guard lock(p.lock);
    p.receives.for_each([&](request& r) {
      p.receives.remove(r);
      r.at = request::place::nowhere;
      ended.append(r);
    });
    // Within this process too: who would receive them may be waiting for the node that is lost.
    p.messages.for_each([&](arrival& a) {
      request* const sender = a.sender();
      if (sender == nullptr) return;
      p.messages.remove(a);
      sender->at = request::place::nowhere;
      ended.append(*sender);
      gone.append(a);
    });
  });
  lanes_.for_each([&](lane& l) {
    l.waiting.take_all().for_each([&](request& r) {
      r.at = request::place::nowhere;
      ended.append(r);
    });
  });
  gone.for_each([](arrival& a) { delete &a; });
  return ended;
}

void messenger::on_lost(const std::exception_ptr& error) {
  ended_requests ended = take_waiting(error);
  names.on_lost(error);
  waits.on_lost(error);
  objects->on_lost();
  {
    const std::lock_guard lock(transfers_mutex_);
    // The memory of the others is in use: on_given(), help_to_copy() and on_arrived() end them.
    std::erase_if(offers_, [&](const auto& o) {
      if (!o.second.is_in_use()) ended.append(*o.second.send);
      return !o.second.is_in_use();
    });
    std::erase_if(fetches_, [&](const auto& one) {
      const fetch& f = one.second;
      // Who was asked may not hear it any more.
      const bool ends = f.moves == nullptr || f.moves->withdraw(f.from, one.first);
      if (ends) ended.append(*f.receive);
      return ends;
    });
  }
  ended.for_each([](request& r) { r.finish(outcome::lost); });
}

void messenger::retire() {
  ended_requests ended = take_waiting(std::make_exception_ptr(after_runtime()));
  for (const auto& [number, o] : offers_) ended.append(*o.send);
  for (const auto& [number, f] : fetches_) ended.append(*f.receive);
  offers_.clear();
  fetches_.clear();
  ended.for_each([](request& r) { r.finish_over(); });
  // What is still with its sender nobody can fetch.
  ports_.for_each([](port& p) {
    const std::lock_guard lock(p.lock);
    p.messages.for_each([&](arrival& a) {
      if (a.offer() == nullptr) return;
      p.messages.remove(a);
      delete &a;
    });
  });
  mail_ = nullptr;
  here_ = nullptr;
  counts_ = nullptr;
}

void messenger::let_go(std::unique_ptr<messenger> m) {
  // Else it may be gone already.
  if (messenger* const last = m.release(); last->ports_.end()) delete last;
}

}  // namespace strata::messages

namespace strata {

bool is_leaving() noexcept {
  const detail::worker& here = detail::this_worker();
  return here.others != nullptr && messages::messenger_of(here)->is_leaving();
}

std::optional<std::vector<node_id_t>> detail::await_other_members(std::span<const node_id_t> known,
                                                                  std::int64_t deadline_ns) {
  const uninterrupted guard;
  messages::messenger& messenger = messages::messenger_or_refusal(
      "nodes can only be waited for within a runtime (runtime::run())");
  require_stack();
  return messenger.await_other_members(known, deadline_ns);
}

std::vector<node_id_t> await_members_other_than(std::span<const node_id_t> known) {
  return *detail::await_other_members(known, detail::parking::never);
}

}  // namespace strata
