// SPDX-License-Identifier: Apache-2.0
// What other nodes send: messages, which wait in ports within the room that each node has there and
// that is given back as they are received. The other end of it is in lanes.cpp.
#include <utility>

#include "messages/messenger.hpp"
#include "strata/error.hpp"

namespace strata::messages {

using cluster::kind;

// ---- room ----

// With the port's lock.
port::account& messenger::account_of(port& p, net::node_id node) {
  if (p.accounts.empty()) p.accounts.resize(mail_->nodes());
  port::account& a = p.accounts[node];
  a.known = true;
  return a;
}

void messenger::keeps(port& p, port::account& a, std::uint32_t kept) noexcept {
  p.full_accounts += kept >= stuck_bytes ? 1U : 0U;
  p.full_accounts -= a.kept >= stuck_bytes ? 1U : 0U;
  a.kept = kept;
}

// After every change of the account, and when somebody begins to wait.
room_notice messenger::notice_for(port& p, net::node_id node, bool somebody_waits) noexcept {
  port::account& a = p.accounts[node];
  const bool stuck = a.kept >= stuck_bytes && (somebody_waits || !p.receives.empty());
  const std::uint32_t bytes =
      a.to_give >= give_back_bytes ? std::exchange(a.to_give, 0) : std::uint32_t{0};
  // That it is no longer stuck can wait until there is room.
  if (bytes == 0 && (!stuck || a.told_stuck)) return {};
  a.told_stuck = stuck;
  return {node, bytes, stuck, ++a.notices};
}

news messenger::news_for(port& p, const pattern& wanted, bool stays) {
  news n;
  if (p.full_accounts == 0) return n;
  // May throw, before anything has changed.
  n.rooms.reserve(p.accounts.size());
  n.sought = seeks_for(p, wanted, stays);
  for (std::size_t node = 0; node < p.accounts.size(); ++node) {
    const room_notice one = notice_for(p, static_cast<net::node_id>(node), true);
    if (one.number != 0) n.rooms.push_back(one);
  }
  for (const seek& s : n.sought) begin_seek(p, s);
  return n;
}

void messenger::post_news(endpoint_id target, const news& n) {
  for (const room_notice& one : n.rooms) post_notice(target, one);
  for (const seek& s : n.sought) post_seek(target, s);
}

void messenger::post_notice(endpoint_id target, const room_notice& n) {
  if (n.number != 0) post(n.to, kind::room, room_head{target.bits(), n.bytes, n.stuck, n.number});
}

room_notice messenger::give_charge_back(port& p, const arrival& a) {
  if (a.charge == 0) return {};
  const net::node_id node = a.info.source.node();
  port::account& from = account_of(p, node);
  keeps(p, from, from.kept - a.charge);
  from.to_give += a.charge;
  return notice_for(p, node, false);
}

void messenger::refuse(net::node_id sender, endpoint_id target, std::uint64_t offer, end_word how) {
  post(sender, kind::closed, closed_head{target.bits(), offer, how});
}

// ---- messages ----

bool messenger::on_message(net::node_id from, kind k, cluster::reader r) {
  switch (k) {
    case kind::message:
      on_eager(from, r);
      break;
    case kind::offer:
      on_offer(from, r);
      break;
    case kind::pull:
      on_pull(from, r);
      break;
    case kind::piece:
      on_piece(from, r);
      break;
    case kind::help:
      on_help(from, r);
      break;
    case kind::fetched:
      on_fetched(from, r);
      break;
    case kind::room:
      on_room(from, r);
      break;
    case kind::closed:
      on_closed(from, r);
      break;
    case kind::seek:
      on_seek(from, r);
      break;
    case kind::sought:
      on_sought(from, r);
      break;
    case kind::recall:
      on_recall(from, r);
      break;
    case kind::told:
      on_told(from, r);
      break;
    case kind::names:
      if (self_ != 0 || mail_->members().of(from) != cluster::standing::leaving)
        throw cluster::malformed("names of a node that does not leave");
      // Whoever knows a name has worked here, and told this node that it would.
      names.inherit(r.take_rest(), static_cast<net::node_id>(mail_->members().begun()),
                    [this](net::node_id n) { return has(n); });
      return true;
    default:
      return false;
  }
  // After what it brought is there for is_idle() to see.
  counts_->received.fetch_add(1, std::memory_order_seq_cst);
  return true;
}

namespace {

// What a process can have of memory. How much of it the sender has, nothing here can tell.
constexpr std::uint64_t process_bytes_max = std::uint64_t{1} << 47;

void check_ends(net::node_id from, net::node_id here, endpoint_id source, endpoint_id target,
                message_tag tag) {
  if (source.node() != from || source.is_any_on_node() || target.node() != here || tag == any_tag)
    throw cluster::malformed("a message with a wrong address");
}

}  // namespace

void messenger::on_eager(net::node_id from, cluster::reader& r) {
  const auto head = r.take<message_head>();
  const auto bytes = r.take_rest();
  const message_info info{endpoint_id::from_bits(head.source), endpoint_id::from_bits(head.target),
                          head.tag, bytes.size()};
  delivery d{.info = &info,
             .bytes = bytes,
             .charge = charge_for_message + static_cast<std::uint32_t>(bytes.size())};
  check_ends(from, self_, info.source, info.target, head.tag);
  const outcome how = deliver(info.target, d);
  if (how != outcome::done) refuse(from, info.target, 0, how);
}

void messenger::on_offer(net::node_id from, cluster::reader& r) {
  const auto head = r.take<offer_head>();
  r.end();
  const arrival::offered offer{head.offer, head.address, head.mark_address, head.mark,
                               head.process};
  const message_info info{endpoint_id::from_bits(head.source), endpoint_id::from_bits(head.target),
                          head.tag, head.bytes};
  delivery d{.info = &info, .offer = &offer, .charge = static_cast<std::uint32_t>(head.charge)};
  check_ends(from, self_, info.source, info.target, head.tag);
  if (head.offer == 0) throw cluster::malformed("an offer without a number");
  if (head.charge != 0 && head.charge != charge_for_message)
    throw cluster::malformed("an offer that takes other room than offers do");
  if (head.bytes > process_bytes_max)
    throw cluster::malformed("an offer of more than there can be");
  const outcome how = deliver(info.target, d);
  if (how != outcome::done) refuse(from, info.target, head.offer, how);
}

}  // namespace strata::messages
