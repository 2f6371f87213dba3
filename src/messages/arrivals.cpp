// SPDX-License-Identifier: Apache-2.0
// What other nodes send: messages, which wait in ports within the room that each node has there and
// that is given back as they are received. The other end of it is in lanes.cpp.
#include <utility>
#include <vector>

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
messenger::room_notice messenger::notice_for(port& p, net::node_id node,
                                             bool somebody_waits) noexcept {
  port::account& a = p.accounts[node];
  const bool stuck = a.kept >= stuck_bytes && (somebody_waits || !p.receives.empty());
  const std::uint32_t bytes =
      a.to_give >= give_back_bytes ? std::exchange(a.to_give, 0) : std::uint32_t{0};
  // That it is no longer stuck can wait until there is room.
  if (bytes == 0 && (!stuck || a.told_stuck)) return {};
  a.told_stuck = stuck;
  return {node, bytes, stuck, ++a.notices};
}

std::vector<messenger::room_notice> messenger::notices_of_wait(port& p) {
  std::vector<room_notice> all;
  if (p.full_accounts == 0) return all;
  all.reserve(p.accounts.size());  // may throw, before anything has changed
  for (std::size_t node = 0; node < p.accounts.size(); ++node) {
    const room_notice n = notice_for(p, static_cast<net::node_id>(node), true);
    if (n.number != 0) all.push_back(n);
  }
  return all;
}

void messenger::post_notice(endpoint_id target, const room_notice& n) {
  if (n.number != 0) post(n.to, kind::room, room_head{target.bits(), n.bytes, n.stuck, n.number});
}

void messenger::refuse(net::node_id sender, endpoint_id target, std::uint64_t offer, outcome how) {
  post(sender, kind::closed, closed_head{target.bits(), offer, how == outcome::announced});
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
  delivery d{.info = &info, .offer = &offer, .charge = charge_for_message};
  check_ends(from, self_, info.source, info.target, head.tag);
  if (head.offer == 0) throw cluster::malformed("an offer without a number");
  if (head.bytes > process_bytes_max)
    throw cluster::malformed("an offer of more than there can be");
  const outcome how = deliver(info.target, d);
  if (how != outcome::done) refuse(from, info.target, head.offer, how);
}

}  // namespace strata::messages
