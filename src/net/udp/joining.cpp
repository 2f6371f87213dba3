// SPDX-License-Identifier: Apache-2.0
// How a node joins the others over UDP, and leaves them.
#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <utility>

#include "net/udp/peer.hpp"
#include "net/udp/udp_transport.hpp"
#include "net/wait_for_events.hpp"
#include "os/clock.hpp"
#include "os/descriptor.hpp"
#include "strata/detail/check.hpp"
#include "strata/error.hpp"

namespace strata::net::udp {

namespace {

// How long leaving waits for answers: several repetitions on the networks that this is for.
constexpr std::int64_t leave_ns_max = 100'000'000;
// How often a node says that it leaves: nobody answers that.
constexpr int last_words = 3;
constexpr std::size_t missing_named_max = 8;
// How often a look takes in what has arrived before it does anything else.
constexpr unsigned rounds_max = 16;
constexpr std::size_t buffer_bytes_min = 2 * (sizeof(header) + payload_bytes_max);

channel::settings channel_settings(const settings& s, std::size_t datagram_bytes) {
  channel::settings c;
  c.out.packet_bytes = datagram_bytes;
  c.out.buffer_bytes = std::max(s.send_buffer_bytes, buffer_bytes_min);
  c.in.buffer_bytes = std::max(s.receive_buffer_bytes, buffer_bytes_min);
  c.tail_bytes = tag_bytes;
  return c;
}

}  // namespace

udp_transport::peer::peer(const settings& s, node_id id_, const target& where,
                          const datagram_socket& from, std::size_t datagram_bytes_,
                          const std::string& own_nonce, const std::string& its_nonce)
    : id(id_),
      to(where),
      socket(from),
      datagram_bytes(datagram_bytes_),
      closes_words(s.key, s.job, s.self, id_, own_nonce, its_nonce, word_seal),
      opens_words(s.key, s.job, id_, s.self, its_nonce, own_nonce, word_seal),
      quick(s.burst_gap_ns),
      meets(s.self, id_, {}) {
  begin(s, {own_nonce, its_nonce});
}

void udp_transport::peer::begin(const settings& s, const renewal_handshake::terms& nonces) {
  auto anew = std::make_unique<channel>(s.self, id, channel_settings(s, datagram_bytes));
  seals fresh(s, id, nonces);
  c = std::move(anew);
  keys = std::move(fresh);
  outbox.clear();
  unsent = 0;
  next_sequence_out = next_sequence_in = 0;
  collected_due_ns = end_limit_ns = never_ns;
  collecting.store(false, std::memory_order_relaxed);
  refused = flush_wanted = false;
  why.clear();
  reported = false;
  dropped.store(false, std::memory_order_relaxed);
  lost.store(false, std::memory_order_release);
}

launch::address udp_transport::address() const { return addresses().front(); }

std::vector<launch::address> udp_transport::addresses() const {
  std::vector<launch::address> own;
  for (const auto& s : sockets_.all()) {
    own.push_back(s->address());
    own.back().worker = nonce_;
  }
  return own;
}

// Whatever comes from it is refused before, and it is not heard of before it says something.
void udp_transport::admit(node_id n, const launch::address& where) {
  const target to = target_of(where);
  const std::size_t bytes = settings_.datagram_bytes == 0
                                ? path_bytes_to(to)
                                : std::min(settings_.datagram_bytes, datagram_bytes_max);
  peers_.add(n, std::make_unique<peer>(settings_, n, to, sockets_.towards(to), bytes, nonce_,
                                       where.worker));
}

udp_transport::absent udp_transport::greet(const std::vector<launch::address>& directory,
                                           std::int64_t deadline_ns, const tidings& meanwhile,
                                           wanted who) {
  STRATA_CHECK(directory.size() <= peers_.numbers(), directory.size(), peers_.numbers());
  for (std::size_t n = 0; n < directory.size(); ++n) {
    if (n != settings_.self && is_somebody(directory[n]))
      admit(static_cast<node_id>(n), directory[n]);
  }
  for (const auto& p : peers_.all()) {
    const std::lock_guard held(p->lock);
    p->c->ping();
    pump(*p, os::now_ns());
  }
  os::descriptor with_news;
  if (meanwhile.readable >= 0) with_news = epoll_on({receiver_.epoll.get(), meanwhile.readable});
  const int sleeps_on = with_news ? with_news.get() : receiver_.epoll.get();
  for (;;) {
    if (meanwhile.look) meanwhile.look();
    const std::int64_t now_ns = os::now_ns();
    look(now_ns);
    absent found;
    for (const auto& p : peers_.all()) {
      const std::lock_guard held(p->lock);
      // Of who has come and is lost while others are waited for, poll() tells.
      if (p->greeted && (who == wanted::all || p->c->out().is_heard())) continue;
      (p->lost.load(std::memory_order_relaxed) ? found.lost : found.silent).push_back(&*p);
    }
    const bool in_vain = who == wanted::all && !found.lost.empty();
    if (found.silent.empty() || in_vain || now_ns >= deadline_ns) return found;
    (void)sleep(receiver_, sleeps_on, deadline_ns);
  }
}

void udp_transport::join(const std::vector<launch::address>& directory, std::int64_t deadline_ns,
                         const tidings& meanwhile, absence of_others) {
  const bool is_accepted = of_others == absence::is_accepted;
  const absent found =
      greet(directory, deadline_ns, meanwhile, is_accepted ? wanted::who_hears : wanted::all);
  if (is_accepted) {
    for (const auto& some : {found.lost, found.silent}) {
      for (const peer* const p : some) drop(p->id);
    }
    return;
  }
  if (!found.lost.empty()) {
    const peer& p = *found.lost.front();
    throw error("cannot join node " + std::to_string(p.id) + " over UDP: it " + p.why);
  }
  if (found.silent.empty()) return;
  std::string names;
  for (std::size_t i = 0; i < std::min(found.silent.size(), missing_named_max); ++i)
    names += (names.empty() ? "node " : ", node ") + std::to_string(found.silent[i]->id);
  if (found.silent.size() > missing_named_max)
    names += " and " + std::to_string(found.silent.size() - missing_named_max) + " more";
  throw error(
      "node " + std::to_string(settings_.self) + " waited in vain for " + names +
      ": not heard of over UDP within the time limit (does a packet filter stand between?)");
}

// As long as nobody polls yet, or any more.
void udp_transport::look(std::int64_t now_ns) {
  {
    const std::lock_guard held(inbox_);
    // Strangers may send faster than this is done: what is left wakes the caller again at once.
    for (unsigned round = 0; round == 0 || (more_arrives_ && round != rounds_max); ++round)
      (void)receive(now_ns);
    answer(now_ns);
  }
  do_what_is_due(now_ns);
}

void udp_transport::leave() {
  const auto all_has_arrived = [all = peers_.all()] {
    return std::all_of(all.begin(), all.end(), [](const auto& p) {
      return p->lost.load(std::memory_order_relaxed) || p->c->has_end() ||
             (p->c->out().is_clear() && p->unsent == 0);
    });
  };
  const std::int64_t begin_ns = os::now_ns();
  unfinished_.store(false, std::memory_order_relaxed);  // nobody polls any more
  for (const auto& p : peers_.all()) {
    const std::lock_guard held(p->lock);
    pump(*p, begin_ns);  // what is collected
  }
  const std::int64_t end_ns = begin_ns + leave_ns_max;
  for (;;) {
    const std::int64_t now_ns = os::now_ns();
    look(now_ns);
    if (all_has_arrived() || now_ns >= end_ns) break;
    (void)sleep(receiver_, receiver_.epoll.get(), end_ns);
  }
  for (int i = 0; i < last_words; ++i) {
    for (const auto& p : peers_.all()) say_end(*p);
  }
}

void udp_transport::say_end(peer& p) {
  if (p.lost.load(std::memory_order_relaxed)) return;
  std::array<std::byte, data_overhead_bytes + acknowledgement_bytes(ranges_max) + tag_bytes> last;
  std::uint64_t number = 0;
  const std::size_t bytes = p.c->last_packet(last, os::now_ns(), number);
  p.keys->closes.close(last, bytes, number);
  const std::size_t size = bytes + tag_bytes;
  (void)p.socket.send(p.to, last, std::span(&size, 1));
}

// The other end hears of it at once, as it does of a socket that is closed: where the network still
// carries something, and unless it lacks a part of what was sent.
void udp_transport::drop(node_id n) noexcept {
  peer* const p = peers_.find(n);
  if (p == nullptr) return;
  const std::lock_guard held(p->lock);
  pump(*p, os::now_ns());  // what is collected
  for (int i = 0; i < last_words; ++i) say_end(*p);
  p->dropped.store(true, std::memory_order_relaxed);
  lose(*p, "was dropped");
}

}  // namespace strata::net::udp
