// SPDX-License-Identifier: Apache-2.0
// What somebody waits for by its source or tag may be with its sender, behind others for which
// there is no room, not even for envelopes. The receiver's node seeks it there, and it comes out of
// turn.
//
// The receiver's side is an account of a port, the sender's the lane to it.
// - The account is full (full_bytes) and somebody asks for what has not come from there: it sends
//   kind::seek with that pattern. As the account gets full, with those of all who wait there.
// - The lane looks for it once in all that waits there, by hashing. The oldest that fits a pattern
//   goes at once, as an envelope that takes no room, and behind it comes kind::sought: whether
//   there was any. It remembers no pattern. If nothing was found, it says kind::sought once more
//   when the next message has to wait there, unasked.
// - What has been found, or has come to wait, is a reason to look again, for all who still wait:
//   what fits several patterns may have been sent for the wrong one. So is who began to wait while
//   an answer was under way.
//
// So nobody waits in vain: where an account stays full with somebody waiting, its last look was for
// all who wait, has found nothing, and nothing has come to wait there since. Receives that are
// matched, given up or end with their port leave nothing behind on the other node, since nothing is
// remembered there; what is found for them too late stays in the port as if it had come in turn. A
// probe does not wait: it is sought once, and again when the program asks again. At most one look
// is under way, so a loop of probes asks no faster than the other node answers.
//
// Order: what goes out of turn takes along all that its own endpoint has sent before, so of one
// source the older messages always leave first, whatever their tags (out_of_turn.hpp).
//
// Bound: beyond its room a node sends what was asked for, an envelope for each receive and each
// probe, and what its source had begun to send before, which is none of a thread that waits for
// each of its sends.
#include <algorithm>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "cluster/words/retry_without_memory.hpp"
#include "messages/messenger.hpp"
#include "messages/out_of_turn.hpp"

namespace strata::messages {

using cluster::kind;

// ---- the receiver's side ----

namespace {

bool may_come_from(const pattern& wanted, net::node_id node) noexcept {
  return !wanted.source || wanted.source.node() == node;
}

sought_pattern packed(const pattern& p) noexcept { return {p.source.bits(), p.tag}; }

}  // namespace

seek messenger::seek_all(port& p, net::node_id node) {
  port::account& a = p.accounts[node];
  seek s{node, {}};
  if (a.kept < full_bytes || !has(node)) return s;
  p.receives.for_each([&](const request& r) {
    if (may_come_from(r.wanted, node)) s.wanted.push_back(packed(r.wanted));
  });
  if (a.seeks != nullptr) {
    for (const pattern& wanted : a.seeks->probed) s.wanted.push_back(packed(wanted));
  }
  if (a.seeks == nullptr && !s.wanted.empty()) a.seeks = std::make_unique<search>();
  return s;
}

void messenger::seek_for_all(port& p, endpoint_id target, net::node_id node) {
  // In a handler: nobody would ask again.
  const seek s = cluster::retry_without_memory([&]() -> seek {
    const std::lock_guard lock(p.lock);
    if (p.id != target) return {};
    if (has_sought(p, node)) {
      p.accounts[node].seeks->again = true;
      if (p.accounts[node].seeks->unanswered != 0) return {};
    }
    seek due = seek_all(p, node);
    begin_seek(p, due);
    return due;
  });
  post_seek(target, s);
}

std::vector<seek> messenger::seeks_for(port& p, const pattern& wanted, bool stays) {
  // A loop of probes may ask for something else each time.
  constexpr std::size_t probed_max = 64;
  std::vector<seek> all;
  for (std::size_t n = 0; n < p.accounts.size(); ++n) {
    port::account& a = p.accounts[n];
    const auto node = static_cast<net::node_id>(n);
    if (a.kept < full_bytes || !may_come_from(wanted, node) || !has(node)) continue;
    if (a.seeks == nullptr) a.seeks = std::make_unique<search>();
    search& s = *a.seeks;
    if (s.unanswered == 0) {
      all.push_back({node, {packed(wanted)}});
    } else if (stays) {
      s.again = true;
    } else if (s.probed.size() < probed_max &&
               std::find(s.probed.begin(), s.probed.end(), wanted) == s.probed.end()) {
      s.probed.push_back(wanted);
      s.again = true;
    }
  }
  return all;
}

void messenger::begin_seek(port& p, const seek& s) noexcept {
  if (!has_sought(p, s.to)) return;
  search& of = *p.accounts[s.to].seeks;
  of.unanswered +=
      static_cast<std::uint32_t>((s.wanted.size() + patterns_in_one_max - 1) / patterns_in_one_max);
  of.again = false;
  of.probed.clear();
}

void messenger::post_seek(endpoint_id target, const seek& s) {
  for (std::span<const sought_pattern> left = s.wanted; !left.empty();) {
    const auto some = left.first(std::min(left.size(), patterns_in_one_max));
    post(s.to, kind::seek, seek_head{target.bits()}, std::as_bytes(some));
    left = left.subspan(some.size());
  }
}

void messenger::on_sought(net::node_id from, cluster::reader& r) {
  const auto head = r.take<sought_head>();
  r.end();
  const auto target = endpoint_id::from_bits(head.target);
  if (target.node() != self_ || head.answers > 1 || head.more > 1)
    throw cluster::malformed("an answer that nobody understands");
  port* const p = ports_.find(target);
  if (p == nullptr) return;
  {
    const std::lock_guard lock(p->lock);
    if (p->id != target) return;
    if (!has_sought(*p, from)) throw cluster::malformed("an answer to what was not asked");
    search& s = *p->accounts[from].seeks;
    if (head.answers > s.unanswered) throw cluster::malformed("more answers than questions");
    s.unanswered -= static_cast<std::uint32_t>(head.answers);
    s.again |= head.more != 0;
    if (s.unanswered != 0 || !s.again) return;
  }
  seek_for_all(*p, target, from);
}

// ---- the sender's side ----

bool messenger::send_out_of_turn(lane& l, std::span<const pattern> asked, wanted_patterns& wanted) {
  // Out of what waits before it is posted, as in send_waiting().
  return take_out_of_turn(l.waiting, asked, wanted,
                          [&](request& r) { transmit(l, r, load::sought); });
}

void messenger::on_seek(net::node_id from, cluster::reader& r) {
  const auto head = r.take<seek_head>();
  const auto target = endpoint_id::from_bits(head.target);
  if (target.node() != from || r.empty())
    throw cluster::malformed("a search for messages that go elsewhere");
  std::vector<pattern> asked;
  wanted_patterns wanted;
  while (!r.empty()) {
    const auto one = r.take<sought_pattern>();
    if (one.tag > any_tag) throw cluster::malformed("a search for a tag that there is not");
    const pattern p{endpoint_id::from_bits(one.source), static_cast<message_tag>(one.tag)};
    cluster::retry_without_memory([&] { asked.push_back(p); });
    cluster::retry_without_memory([&] { wanted.add(p); });
  }
  const std::shared_ptr<lane> l = lanes_.find(target);
  if (l == nullptr) return;  // its end was told, and it is forgotten
  const std::lock_guard lock(l->lock);
  if (l->open != outcome::done || broken_.load(std::memory_order_acquire)) return;
  const bool found = send_out_of_turn(*l, asked, wanted);
  if (!found) l->awaits_news = true;
  // With the lock, so that news come behind it.
  post(from, kind::sought, sought_head{target.bits(), 1, found ? 1U : 0U});
}

void messenger::tell_of_news(lane& l) {
  l.awaits_news = false;
  post(l.target.node(), kind::sought, sought_head{l.target.bits(), 0, 1});
}

}  // namespace strata::messages
