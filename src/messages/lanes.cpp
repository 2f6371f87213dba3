// SPDX-License-Identifier: Apache-2.0
// Messages to other nodes, within the room that their targets have.
#include <utility>

#include "messages/messenger.hpp"
#include "messages/process_memory.hpp"
#include "strata/error.hpp"

namespace strata::messages {

using cluster::kind;
using std::memory_order_relaxed;

template <class Head>
void messenger::post(net::node_id to, kind k, const Head& head, std::span<const std::byte> body) {
  static_assert(std::has_unique_object_representations_v<Head>);
  if (broken_.load(memory_order_relaxed)) return;
  // Before it can arrive. Partner: on_message() there, and quiescence.
  counts_->sent.fetch_add(1, std::memory_order_seq_cst);
  mail_->post(to, k, std::as_bytes(std::span(&head, 1)), body);
}
template void messenger::post(net::node_id, kind, const fetched_head&, std::span<const std::byte>);
template void messenger::post(net::node_id, kind, const pull_head&, std::span<const std::byte>);
template void messenger::post(net::node_id, kind, const piece_head&, std::span<const std::byte>);
template void messenger::post(net::node_id, kind, const help_head&, std::span<const std::byte>);

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

std::shared_ptr<lane> messenger::lane_to(endpoint_id target) {
  shard& s = shards_[std::hash<endpoint_id>()(target) % lane_shards];
  const std::lock_guard lock(s.lock);
  std::shared_ptr<lane>& l = s.lanes[target];
  if (l == nullptr) l = std::make_shared<lane>(target);
  return l;
}

// Most threads send to one endpoint many times.
const std::shared_ptr<lane>& messenger::lane_in_use(endpoint_id target) {
  struct used {
    std::uint64_t office = 0;
    std::shared_ptr<lane> to;
  };
  static thread_local used last;
  // A lane that has been forgotten meanwhile had been closed, and says so.
  if (last.office != serial_ || last.to->target != target) last = {serial_, lane_to(target)};
  return last.to;
}

messenger::load messenger::take_room(lane& l, const request& r) noexcept {
  const net::node_id to = r.info.target.node();
  // Asked only where it makes a difference.
  net::joint_copies* const way = r.from.size() > eager_bytes_max ? mail_->copies_with(to) : nullptr;
  const bool is_near = way != nullptr && way->copies_of(to) != nullptr;
  const std::size_t eager_max = is_near ? eager_bytes_near : eager_bytes_max;
  const std::size_t all = charge_for_message + r.from.size();
  if (r.what == action::send && r.from.size() <= eager_max) {
    if (l.room >= all + reserve_bytes) {
      l.room -= static_cast<std::uint32_t>(all);
      return load::everything;
    }
    // Fetched one by one they cost more than it takes until there is room again.
    if (!l.stuck) return load::nothing;
  }
  if (l.room < charge_for_message) return load::nothing;
  l.room -= charge_for_message;
  return load::envelope;
}

void messenger::send_to_node(request& r) {
  const std::shared_ptr<lane>& to = lane_in_use(r.info.target);
  lane& l = *to;
  outcome how = outcome::done;
  {
    const std::lock_guard lock(l.lock);
    if (broken_.load(std::memory_order_acquire)) {
      how = outcome::lost;
    } else if (l.open != outcome::done) {
      how = l.open;
    } else {
      const load what = l.waiting.empty() ? take_room(l, r) : load::nothing;
      if (what == load::nothing) {
        r.at = request::place::lane;
        r.on = to;
        l.waiting.append(r);
        return;
      }
      transmit(l, r, what);
      if (what == load::envelope) return;
    }
  }
  r.finish_unseen(how);
}

void messenger::transmit(lane& l, request& r, load what) {
  const net::node_id to = r.info.target.node();
  r.at = request::place::nowhere;
  if (what == load::everything) {
    post(to, kind::message, message_head{r.info.target.bits(), r.info.source.bits(), r.info.tag, 0},
         r.from);
    ++l.eager;
    return;
  }
  r.at = request::place::offered;
  std::uint64_t number = 0;
  {
    const std::lock_guard lock(transfers_mutex_);
    number = next_number_++;
    offers_.emplace(number, open_offer{&r});
  }
  const process_mark mark = own_mark();
  post(to, kind::offer,
       offer_head{.target = r.info.target.bits(),
                  .source = r.info.source.bits(),
                  .bytes = r.from.size(),
                  .offer = number,
                  .address = reinterpret_cast<std::uintptr_t>(r.from.data()),
                  .mark_address = mark.address,
                  .mark = mark.value,
                  .process = own_process(),
                  .tag = r.info.tag});
}

// With the lane's lock. Returns those that have ended with it.
std::vector<request*> messenger::send_waiting(lane& l) {
  std::vector<request*> ended;
  while (!l.waiting.empty()) {
    request& next = *l.waiting.first;
    const load what = take_room(l, next);
    if (what == load::nothing) break;
    // Before it is posted: an offer may be fetched, and its request be gone, at once.
    l.waiting.remove(next);
    transmit(l, next, what);
    if (what == load::everything) ended.push_back(&next);
  }
  return ended;
}

void messenger::close_lane(endpoint_id target, outcome how) {
  shard& s = shards_[std::hash<endpoint_id>()(target) % lane_shards];
  std::shared_ptr<lane> l;
  {
    const std::lock_guard lock(s.lock);
    // The name is remembered for a while: who sends there later is told at once.
    std::shared_ptr<lane>& entry = s.lanes[target];
    if (entry == nullptr) entry = std::make_shared<lane>(target);
    l = entry;
    s.closed.push_back(target);
    if (s.closed.size() > closed_names_max) {
      if (const auto oldest = s.lanes.find(s.closed.front()); oldest != s.lanes.end()) {
        {
          const std::lock_guard one(oldest->second->lock);
          s.eager += oldest->second->eager;
        }
        s.lanes.erase(oldest);
      }
      s.closed.pop_front();
    }
  }
  match_list<request, 0> waiting;
  {
    const std::lock_guard lock(l->lock);
    l->open = how;
    waiting = std::exchange(l->waiting, {});
    waiting.for_each([](request& r) { r.at = request::place::nowhere; });
  }
  waiting.for_each([how](request& r) { r.finish(how); });
}

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

// ---- from other nodes ----

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

void messenger::on_room(net::node_id from, cluster::reader& r) {
  const auto head = r.take<room_head>();
  r.end();
  const auto target = endpoint_id::from_bits(head.target);
  if (target.node() != from || head.bytes > window_bytes || head.stuck > 1)
    throw cluster::malformed("room for messages that were not sent");
  const std::shared_ptr<lane> l = lane_to(target);
  std::vector<request*> ended;
  {
    const std::lock_guard lock(l->lock);
    if (head.bytes > window_bytes - l->room) throw cluster::malformed("more room than there is");
    l->room += static_cast<std::uint32_t>(head.bytes);
    if (head.number > l->last_notice) {
      l->last_notice = head.number;
      l->stuck = head.stuck != 0;
    }
    ended = send_waiting(*l);
  }
  for (request* const one : ended) one->finish(outcome::done);
}

void messenger::on_closed(net::node_id from, cluster::reader& r) {
  const auto head = r.take<closed_head>();
  r.end();
  const auto target = endpoint_id::from_bits(head.target);
  if (target.node() != from) throw cluster::malformed("an end of another node's endpoint");
  if (head.announced > 1) throw cluster::malformed("an end that is unknown");
  const outcome how = head.announced != 0 ? outcome::announced : outcome::closed;
  close_lane(target, how);
  if (head.offer == 0) return;
  if (request* const refused = take_offer(head.offer, from)) refused->finish(how);
}

// ---- nodes that come and go ----

void messenger::on_coming(net::node_id node, bool same_host) {
  readable_[node].store(same_host, memory_order_relaxed);
  writes_here_[node].store(same_host, memory_order_relaxed);
}

void messenger::on_left(net::node_id node) {
  std::vector<endpoint_id> gone;
  for (shard& s : shards_) {
    const std::lock_guard lock(s.lock);
    for (const auto& [target, l] : s.lanes) {
      if (target.node() == node) gone.push_back(target);
    }
  }
  for (const endpoint_id target : gone) close_lane(target, outcome::closed);
  std::vector<request*> ended;
  // What has come from there is received already, or waits.
  ports_.for_each([&](port& p) {
    const std::lock_guard lock(p.lock);
    p.receives.for_each([&](request& r) {
      if (!r.wanted.source || r.wanted.source.node() != node) return;
      p.receives.remove(r);
      r.at = request::place::nowhere;
      ended.push_back(&r);
    });
  });
  {
    const std::lock_guard lock(transfers_mutex_);
    for (auto at = offers_.begin(); at != offers_.end();) {
      const bool ends = at->second.send->info.target.node() == node && !at->second.is_in_use();
      if (ends) ended.push_back(at->second.send);
      at = ends ? offers_.erase(at) : std::next(at);
    }
    for (auto at = fetches_.begin(); at != fetches_.end();) {
      const bool ends = at->second.from == node && !at->second.moves;
      if (ends) ended.push_back(at->second.receive);
      at = ends ? fetches_.erase(at) : std::next(at);
    }
  }
  for (request* const r : ended) r->finish(outcome::left);
  names.forget_those_of(node);
  names.members_have_changed();
}

void messenger::on_leaving() { names.begin_to_leave(); }

bool messenger::holds_something() {
  bool open = false;
  ports_.for_each([&](port& p) {
    const std::lock_guard lock(p.lock);
    open |= p.id != endpoint_id();
  });
  return open;
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

void messenger::on_lost(const std::exception_ptr& error) {
  loss_ = error;
  // Release: the loss. Partner: the acquire loads of whoever begins. Under each lock below, so that
  // nobody waits who has not seen it.
  broken_.store(true, std::memory_order_seq_cst);
  std::vector<request*> ended;
  std::vector<std::unique_ptr<arrival>> gone;
  names.on_lost(error);
  objects->on_lost();
  ports_.for_each([&](port& p) {
    const std::lock_guard lock(p.lock);
    p.receives.for_each([&](request& r) {
      p.receives.remove(r);
      r.at = request::place::nowhere;
      ended.push_back(&r);
    });
    // Within this process too: who would receive them may be waiting for the node that is lost.
    p.messages.for_each([&](arrival& a) {
      request* const sender = a.sender();
      if (sender == nullptr) return;
      p.messages.remove(a);
      sender->at = request::place::nowhere;
      ended.push_back(sender);
      gone.emplace_back(&a);
    });
  });
  for (shard& s : shards_) {
    const std::lock_guard lock(s.lock);
    for (const auto& [target, l] : s.lanes) {
      const std::lock_guard one(l->lock);
      std::exchange(l->waiting, {}).for_each([&](request& r) {
        r.at = request::place::nowhere;
        ended.push_back(&r);
      });
    }
  }
  {
    const std::lock_guard lock(transfers_mutex_);
    // The memory of the others is in use: on_given(), help_to_copy() and on_arrived() end them.
    std::erase_if(offers_, [&](const auto& o) {
      if (!o.second.is_in_use()) ended.push_back(o.second.send);
      return !o.second.is_in_use();
    });
    std::erase_if(fetches_, [&](const auto& one) {
      const fetch& f = one.second;
      // Who was asked may not hear it any more.
      const bool ends = f.moves == nullptr || f.moves->withdraw(f.from, one.first);
      if (ends) ended.push_back(f.receive);
      return ends;
    });
  }
  for (request* const r : ended) r->finish(outcome::lost);
}

}  // namespace strata::messages
