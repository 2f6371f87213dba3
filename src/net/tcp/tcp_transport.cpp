// SPDX-License-Identifier: Apache-2.0
#include "net/tcp/tcp_transport.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <cerrno>

#include "base/errno_error.hpp"
#include "net/tcp/silence.hpp"
#include "strata/detail/check.hpp"

namespace strata::net::tcp {

struct tcp_transport::peer {
  peer(node_id id_, node_id self, os::descriptor s, const options& o, sender_wait& sender)
      : id(id_), socket(std::move(s)), out(socket.get(), id_, o, sender), in(id_, self) {}

  const node_id id;
  // Open until outgoing::release() or ::restart(), since any thread may be about to write into it.
  os::descriptor socket;
  outgoing out;
  incoming in;
  silence quiet;
  bool lost = false;                 // reported
  bool queued = false;               // in turns_
  std::atomic<bool> dropped{false};  // its end is known already
};

namespace {

// All calls but blocking writes say MSG_DONTWAIT themselves.
void make_blocking(int fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  const timeval limit{0, blocking_write_ms_max * 1000};
  if (flags < 0 || ::fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) != 0 ||
      ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) != 0) {
    throw errno_error("cannot make a connection blocking", errno);
  }
}

}  // namespace

tcp_transport::tcp_transport(node_id self, std::vector<os::descriptor> sockets, const options& o)
    : self_(self),
      options_(o),
      peers_(sockets.size()),
      readiness_(o.mechanism, {}),
      turns_(sockets.size()) {
  for (std::size_t n = 0; n < sockets.size(); ++n) {
    if (sockets[n]) admit(static_cast<node_id>(n), std::move(sockets[n]));
  }
}

tcp_transport::~tcp_transport() {
  for (const auto& p : owned_) (void)p->out.flush();
}

void tcp_transport::admit(node_id n, os::descriptor socket) {
  STRATA_CHECK(n < peers_.size() && !reaches(n), n, peers_.size());
  // Into whose sockets somebody was writing when they were lost.
  for (const auto& p : owned_) give_back(*p);
  if (options_.io == io_mode::blocking) make_blocking(socket.get());
  owned_.push_back(std::make_unique<peer>(n, self_, std::move(socket), options_, sender_));
  peers_[n].store(owned_.back().get(), std::memory_order_release);
  readiness_.add({owned_.back()->socket.get(), n});
}

bool tcp_transport::restart(node_id n, os::descriptor socket) {
  peer& p = at(n);
  if (options_.io == io_mode::blocking) make_blocking(socket.get());
  // Nobody may have looked since it was dropped.
  if (!p.lost) forget(p, "was replaced");
  if (!p.out.restart(socket.get())) return false;
  p.in.restart();
  p.quiet.restart();
  p.socket = std::move(socket);
  p.lost = false;
  p.dropped.store(false, std::memory_order_relaxed);
  readiness_.add({p.socket.get(), n});
  return true;
}

tcp_transport::peer& tcp_transport::at(node_id n) const {
  STRATA_CHECK(reaches(n), n, peers_.size());
  return *peers_[n].load(std::memory_order_acquire);
}

bool tcp_transport::reaches(node_id n) const noexcept {
  return n < peers_.size() && peers_[n].load(std::memory_order_acquire) != nullptr;
}

send_outcome tcp_transport::try_send(node_id n, header h, std::span<const std::byte> head,
                                     std::span<const std::byte> body) {
  STRATA_DCHECK(h.source == self_, h.source, self_);
  STRATA_DCHECK(h.destination == n, h.destination, n);
  return at(n).out.try_send(h, head, body);
}

void tcp_transport::cork(node_id n, std::span<const std::byte> lasting) noexcept {
  at(n).out.cork(lasting);
}

void tcp_transport::uncork(node_id n) noexcept { at(n).out.uncork(); }

bool tcp_transport::flush(node_id n) { return at(n).out.flush(); }

std::size_t tcp_transport::poll(receiver& r, std::size_t messages_max) {
  readiness_.look(ready_);
  add_turns();
  std::size_t handed = 0;
  // Round after round, so that less than was allowed means that nothing is left.
  while (turn_count_ > 0 && handed < messages_max) {
    // A fair share of what is allowed, but all of it for the last.
    const std::size_t share = std::max<std::size_t>((messages_max - handed) / turn_count_, 1);
    peer& p = *turns_[first_turn_];
    first_turn_ = (first_turn_ + 1) % turns_.size();
    --turn_count_;
    p.queued = false;
    handed += serve(p, r, share);
    if (!p.lost && p.in.has_next()) {
      ready_.push_back(p.id);
      add_turns();
    }
  }
  if (turn_count_ == 0) {
    unfinished_.store(false, std::memory_order_release);
    return handed;
  }
  // Seq_cst, as what sleepers look at once more. Partners: wait_for_messages(), stand_in().
  unfinished_.store(true, std::memory_order_seq_cst);
  // What has been read no socket tells of to who went to sleep before.
  if (readiness_.ring_for_rest()) receiver_wakes_.fetch_add(1, std::memory_order_relaxed);
  return handed;
}

// Gives everybody in ready_ a turn, after those who wait for theirs.
void tcp_transport::add_turns() {
  for (const std::uint32_t n : ready_) {
    peer& p = at(static_cast<node_id>(n));
    if (p.queued) continue;
    p.queued = true;
    turns_[(first_turn_ + turn_count_++) % turns_.size()] = &p;
  }
  ready_.clear();
}

std::size_t tcp_transport::serve(peer& p, receiver& r, std::size_t messages_max) {
  using outcome = incoming::outcome;
  if (p.lost) return 0;
  if (p.dropped.load(std::memory_order_relaxed)) {
    forget(p, {});
    give_back(p);
    return 0;
  }
  if (!p.in.has_next()) {
    const outcome got = p.in.receive(p.socket.get());
    if (got == outcome::lost) lose(p, r, p.in.why());
    if (got != outcome::ok) return 0;
  }
  std::size_t handed = 0;
  while (handed < messages_max && !p.dropped.load(std::memory_order_relaxed)) {
    header h;
    std::span<const std::byte> payload;
    const outcome got = p.in.next(h, payload);
    if (got == outcome::lost) lose(p, r, p.in.why());
    if (got != outcome::ok) break;
    ++handed;
    r.on_message(h, payload);
  }
  return handed;
}

// It is sent nothing any more, and nothing of it is looked for.
void tcp_transport::forget(peer& p, const std::string& why) {
  p.lost = true;
  readiness_.remove(p.id);
  p.out.lose(why);
}

// Nodes may come and go for as long as the job runs: what this one has for them goes with them.
void tcp_transport::give_back(peer& p) {
  if (!p.lost || !p.socket || !p.out.release()) return;
  p.in.give_back_memory();
  p.socket.reset();
}

void tcp_transport::lose(peer& p, receiver& r, const std::string& why) {
  forget(p, why);
  give_back(p);
  if (p.dropped.load(std::memory_order_relaxed)) return;
  r.on_lost(p.id, p.out.trouble());  // a failed write may have been first, and knows more
}

void tcp_transport::look_for_silence(receiver& r, std::int64_t now_ns, std::int64_t limit_ns) {
  for (const auto& p : owned_) {
    if (p->lost || p->dropped.load(std::memory_order_relaxed)) continue;
    if (p->quiet.lasts(p->socket.get(), now_ns, limit_ns))
      lose(*p, r,
           "has acknowledged nothing for " + std::to_string(limit_ns / 1'000'000) +
               " ms: the network carries nothing to it");
  }
}

void tcp_transport::drop(node_id n) noexcept {
  if (!reaches(n)) return;
  at(n).dropped.store(true, std::memory_order_relaxed);
  at(n).out.lose("was dropped");  // the receiver is woken by the end of the stream
}

void tcp_transport::wait_for_messages(std::int64_t timeout_ns) {
  const auto is_finished = [this] { return !unfinished_.load(std::memory_order_seq_cst); };
  if (is_finished()) readiness_.wait(timeout_ns, is_finished);
}

void tcp_transport::wake_receiver() noexcept {
  if (readiness_.ring()) receiver_wakes_.fetch_add(1, std::memory_order_relaxed);
}

transport::stand_in_outcome tcp_transport::stand_in(os::futex_word& own,
                                                    std::uint32_t expected) noexcept {
  const auto finds_rest = [this] {
    if (!unfinished_.load(std::memory_order_seq_cst)) return false;
    readiness_.attended();
    return true;
  };
  // First: whoever left it may have relied on us.
  if (finds_rest()) return stand_in_outcome::is_to_poll;
  if (stand_in_dismissed_.load(std::memory_order_seq_cst)) return stand_in_outcome::not_here;
  // Either we see here what has changed, or whoever changed it rings after we may sleep.
  const auto stays = [&] {
    return own.load(std::memory_order_seq_cst) == expected &&
           !stand_in_dismissed_.load(std::memory_order_seq_cst) &&
           !unfinished_.load(std::memory_order_seq_cst);
  };
  if (readiness_.wait_as_stand_in(stays) || finds_rest()) return stand_in_outcome::is_to_poll;
  return stand_in_outcome::left;
}

void tcp_transport::dismiss_stand_in() noexcept {
  stand_in_dismissed_.store(true, std::memory_order_seq_cst);
  readiness_.ring_stand_in();
}

void tcp_transport::wait_for_room(std::int64_t timeout_ns) {
  const auto next_due_ns = [this] {
    std::int64_t due_ns = never_ns;
    for (const std::atomic<peer*>& one : peers_) {
      const peer* const p = one.load(std::memory_order_acquire);
      if (p != nullptr) due_ns = std::min(due_ns, p->out.due_ns());
    }
    return due_ns;
  };
  sender_.wait(timeout_ns, next_due_ns,
               [this](std::uint32_t n) { at(static_cast<node_id>(n)).out.writable(); });
}

void tcp_transport::wake_sender() noexcept { sender_.end_wait(); }

transport::traffic tcp_transport::counted() const noexcept {
  traffic t;
  for (const std::atomic<peer*>& one : peers_) {
    const peer* const p = one.load(std::memory_order_acquire);
    if (p == nullptr) continue;
    p->out.add_to(t);
    p->in.add_to(t);
  }
  t.wakes = sender_.wakes() + receiver_wakes_.load(std::memory_order_relaxed);
  return t;
}

}  // namespace strata::net::tcp
