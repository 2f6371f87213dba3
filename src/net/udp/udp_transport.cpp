// SPDX-License-Identifier: Apache-2.0
// What goes out and what comes in. How nodes find each other and part is in joining.cpp, who sleeps
// and what is done at which time in waiting.cpp.
#include "net/udp/udp_transport.hpp"

#include <algorithm>
#include <cstring>

#include "net/udp/peer.hpp"
#include "os/clock.hpp"
#include "strata/detail/check.hpp"

namespace strata::net::udp {

namespace {

// How long what a leaving node has said may still be under way.
constexpr std::int64_t late_ns_max = 50'000'000;
// When to try again if the socket has no room and nobody sleeps until it has.
constexpr std::int64_t full_socket_ns = 1'000'000;
// What is sealed at once, so that a system call is shared by many; a burst waits for no more.
constexpr std::size_t batch_bytes = std::size_t{64} << 10;
// And nothing so large waits.
constexpr std::size_t large_bytes = std::size_t{8} << 10;

// Partners: lose() and note(). Mostly there is nothing to take, and whoever polls writes nothing
// then.
bool take_flag(std::atomic<bool>& flag) noexcept {
  return flag.load(std::memory_order_relaxed) && flag.exchange(false, std::memory_order_acquire);
}

}  // namespace

udp_transport::udp_transport(const settings& s)
    : settings_(s),
      nonce_(fresh_nonce()),
      sockets_(s.bind_addresses),
      peers_(s.nodes),
      receiver_(sockets_.arrivals()),
      attendants_(receiver_.epoll.get(), sockets_.arrivals()),
      sender_fetches_(epoll_on({sender_.bell.get(), sockets_.arrivals()})),
      turns_(s.nodes) {}

udp_transport::~udp_transport() { leave(); }

bool udp_transport::reaches(node_id n) const noexcept {
  const peer* const p = peers_.find(n);
  return p != nullptr && !p->dropped.load(std::memory_order_relaxed);
}

// ---- out ----

send_outcome udp_transport::try_send(node_id n, header h, std::span<const std::byte> head,
                                     std::span<const std::byte> body) {
  peer* const found = peers_.find(n);
  if (found == nullptr) return send_outcome::lost;
  peer& p = *found;
  STRATA_DCHECK(h.source == settings_.self, h.source, settings_.self);
  STRATA_DCHECK(h.destination == n, h.destination, n);
  STRATA_CHECK(head.size() + body.size() <= payload_bytes_max, head.size(), body.size());
  const std::lock_guard held(p.lock);
  if (p.lost.load(std::memory_order_relaxed)) return send_outcome::lost;
  h.length = static_cast<std::uint32_t>(head.size() + body.size());
  h.sequence = p.next_sequence_out;
  if (!p.c->write(std::as_bytes(std::span(&h, 1)), head, body)) {
    p.refused = true;
    return send_outcome::would_block;
  }
  ++p.next_sequence_out;
  ++p.messages_out;
  p.bytes_out += sizeof h + h.length;
  if (collects(p, sizeof h + h.length)) return send_outcome::staged;
  pump(p, os::now_ns());
  p.quick.sent(os::ticks());
  return p.c->out().is_sent() && p.unsent == 0 ? send_outcome::sent : send_outcome::staged;
}

bool udp_transport::collects(peer& p, std::size_t bytes) {
  const std::uint64_t now_ticks = os::ticks();
  if (!p.quick.goes_on(now_ticks) || bytes >= large_bytes || p.unsent != 0 ||
      p.c->out().unsent_bytes() >= batch_bytes)
    return false;
  if (p.collected_due_ns == never_ns) {
    const std::int64_t now_ns = os::now_ns();
    p.collected_due_ns = now_ns + settings_.flush_deadline_ns;
    p.collected_due_ticks = now_ticks + os::to_ticks(settings_.flush_deadline_ns);
    p.collecting.store(true, std::memory_order_relaxed);
    if (p.collected_due_ns < p.due_ns.load(std::memory_order_relaxed))
      p.due_ns.store(p.collected_due_ns);
    sender_.alarm(p.collected_due_ns, now_ns);
  } else if (now_ticks >= p.collected_due_ticks) {
    return false;
  }
  p.quick.sent(now_ticks);
  return true;
}

bool udp_transport::flush(node_id n) {
  peer* const found = peers_.find(n);
  if (found == nullptr) return true;
  peer& p = *found;
  const std::lock_guard held(p.lock);
  if (p.lost.load(std::memory_order_relaxed)) return true;
  pump(p, os::now_ns());
  if (p.c->out().is_sent() && p.unsent == 0) return true;
  p.flush_wanted = true;
  return false;
}

void udp_transport::pump(peer& p, std::int64_t now_ns) {
  if (p.lost.load(std::memory_order_relaxed)) return;
  bool burst_goes_on = false;
  if (p.collected_due_ns != never_ns) {
    p.collected_due_ns = never_ns;
    p.collecting.store(false, std::memory_order_relaxed);
    burst_goes_on = !p.quick.is_over(os::ticks());
  }
  for (;;) {
    if (p.unsent == 0) {
      const std::size_t most =
          std::clamp<std::size_t>(batch_bytes / p.datagram_bytes, 1, batch_max);
      p.outbox.resize(most * p.datagram_bytes);
      std::size_t at = 0;
      while (p.unsent < most) {
        const std::span<std::byte> into = std::span(p.outbox).subspan(at, p.datagram_bytes);
        std::uint64_t number = 0;
        const std::size_t bytes = p.c->next_packet(into, now_ns, number);
        if (bytes == 0) break;
        p.keys->closes.close(into, bytes, number);
        p.sizes[p.unsent++] = bytes + tag_bytes;
        at += bytes + tag_bytes;
      }
      if (p.unsent == 0) break;
    }
    ++p.writes;
    const std::size_t taken = p.socket.send(p.to, p.outbox, std::span(p.sizes).first(p.unsent));
    if (taken < p.unsent) {
      std::size_t bytes = 0;
      for (std::size_t i = 0; i < taken; ++i) bytes += p.sizes[i];
      p.outbox.erase(p.outbox.begin(), p.outbox.begin() + static_cast<std::ptrdiff_t>(bytes));
      std::copy(p.sizes.begin() + static_cast<std::ptrdiff_t>(taken), p.sizes.end(),
                p.sizes.begin());
      p.unsent -= taken;
      watch(p.socket);
      break;
    }
    p.unsent = 0;
  }
  // Who waited for the lock meanwhile goes on with its burst.
  if (burst_goes_on) p.quick.sent(os::ticks());
  look_after(p, now_ns);
}

// Tells whoever sleeps what has changed for them.
void udp_transport::look_after(peer& p, std::int64_t now_ns) {
  plan(p, now_ns);
  const sending& out = p.c->out();
  if (p.refused && out.waiting_bytes() <= settings_.send_buffer_bytes / 2) {
    p.refused = false;
    room_is_made();
  }
  if (p.flush_wanted && out.is_sent() && p.unsent == 0) {
    p.flush_wanted = false;
    room_is_made();
  }
}

void udp_transport::plan(peer& p, std::int64_t now_ns) {
  excuse_silence(p, now_ns);
  std::int64_t due_ns = never_ns;
  if (!p.lost.load(std::memory_order_relaxed)) {
    // Acknowledgements are due to nobody any more once they wait for the socket.
    due_ns = p.unsent != 0 ? now_ns + full_socket_ns : p.c->due_ns();
    due_ns = std::min({due_ns, p.end_limit_ns, p.collected_due_ns});
  }
  due_ns = std::min(due_ns, p.meets.due_ns());
  p.due_ns.store(due_ns);
  if (due_ns == never_ns) return;
  sender_.alarm(due_ns, now_ns);
  receiver_.alarm(due_ns, now_ns);
}

void udp_transport::lose(peer& p, const std::string& why) {
  if (p.lost.load(std::memory_order_relaxed)) return;
  p.why = why;
  p.lost.store(true, std::memory_order_release);
  p.due_ns.store(p.meets.due_ns());
  p.collected_due_ns = never_ns;
  p.collecting.store(false, std::memory_order_relaxed);
  p.unsent = 0;
  room_is_made();
  // Whoever polls next reports it, unless it was dropped.
  losses_.store(true, std::memory_order_release);
  receiver_.ring();
}

// ---- in ----

std::size_t udp_transport::poll(receiver& r, std::size_t messages_max) {
  const std::lock_guard polling(inbox_);
  const handing_over now_it_is(*this);
  polls_.store(polls_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  const std::int64_t now_ns = os::now_ns();
  (void)receive(now_ns);
  std::size_t handed = 0;
  for (std::size_t left = turn_count_; left > 0 && handed < messages_max; --left) {
    peer& p = *turns_[first_turn_];
    first_turn_ = (first_turn_ + 1) % turns_.size();
    --turn_count_;
    p.queued = false;
    // A fair share of what is allowed, but all of it for the last.
    handed += serve(p, r, std::max<std::size_t>((messages_max - handed) / left, 1));
  }
  answer(now_ns);
  if (take_flag(losses_)) report_losses(r);
  if (told_ != nullptr && take_flag(meetings_)) report_meetings();
  send_what_is_collected(now_ns);
  if (next_due_ns() <= now_ns) do_what_is_due(now_ns);
  if (turn_count_ == 0 && !more_arrives_) {
    unfinished_.store(false, std::memory_order_release);
    return handed;
  }
  // Nothing else tells a receiver that went to sleep before. Either we see that it does, or it sees
  // this when it looks once more: both sides are seq_cst. Partner: sleep().
  unfinished_.store(true);
  if (receiver_.sleeps_until_ns.load() != 0) receiver_.ring();
  return handed;
}

std::size_t udp_transport::receive(std::int64_t now_ns) {
  std::size_t all = 0;
  more_arrives_ = false;
  for (const auto& s : sockets_.all()) {
    const std::size_t count = arrivals_.receive(*s);
    for (std::size_t i = 0; i < count; ++i) take(arrivals_.at(i), now_ns);
    all += count;
    more_arrives_ |= arrivals_.is_full();
  }
  return all;
}

// Anybody may have sent this.
void udp_transport::take(std::span<const std::byte> datagram, std::int64_t now_ns) {
  if (is_word(datagram)) return take_word(datagram, now_ns);
  packet_head head;
  peer* const source = read_head(datagram, head) ? peers_.find(head.source) : nullptr;
  if (source == nullptr || head.destination != settings_.self) {
    refused_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  if (!source->keys->opens.is_whole(datagram, head.number)) {
    refused_.fetch_add(1, std::memory_order_relaxed);
    return answer_declined(*source, datagram, head);
  }
  // A node of the job has.
  peer& p = *source;
  packet arrived;
  const bool is_packet = read_packet(datagram.first(datagram.size() - tag_bytes), arrived);
  const std::lock_guard held(p.lock);
  if (p.lost.load(std::memory_order_relaxed)) return;
  p.greeted = true;
  const std::uint64_t complete_before = p.c->in().complete_to();
  if (!is_packet || p.c->on_packet(arrived, now_ns) == channel::outcome::malformed) {
    return lose(p, "sent a malformed packet");
  }
  if (p.c->has_end() && p.end_limit_ns == never_ns) p.end_limit_ns = now_ns + late_ns_max;
  if (p.c->in().complete_to() != complete_before || p.c->is_complete()) add_turn(p);
  if (!p.heard) {
    p.heard = true;
    heard_.push_back(&p);
  }
}

void udp_transport::add_turn(peer& p) {
  if (p.queued) return;
  p.queued = true;
  turns_[(first_turn_ + turn_count_++) % turns_.size()] = &p;
}

// Whether a whole message is there, or something that is none.
bool udp_transport::next_message(peer& p, std::span<const std::byte> data, header& h) {
  if (data.size() < sizeof h) return false;
  std::memcpy(&h, data.data(), sizeof h);
  if (h.length > payload_bytes_max || h.source != p.id || h.destination != settings_.self ||
      h.sequence != p.next_sequence_in) {
    const std::lock_guard held(p.lock);
    lose(p, "sent a malformed message");
    return false;
  }
  return data.size() - sizeof h >= h.length;
}

std::size_t udp_transport::serve(peer& p, receiver& r, std::size_t messages_max) {
  // What has arrived of one that has left is not lost with it, however late somebody polls.
  if (p.dropped.load(std::memory_order_relaxed) ||
      (p.lost.load(std::memory_order_relaxed) && !p.c->is_complete()))
    return 0;
  // p.lock is not held: only who holds inbox_ changes what is there.
  std::span<const std::byte> data = p.c->in().data();
  const std::size_t all = data.size();
  std::size_t handed = 0;
  header h;
  bool more = false;
  p.served = true;
  while ((more = next_message(p, data, h)) && handed < messages_max) {
    if (p.dropped.load(std::memory_order_relaxed)) break;
    ++handed;
    ++p.next_sequence_in;
    r.on_message(h, data.subspan(sizeof h, h.length));
    data = data.subspan(sizeof h + h.length);
  }
  p.served = false;
  const std::size_t used = all - data.size();
  const std::lock_guard held(p.lock);
  if (used != 0) {
    p.c->in().consume(used);
    if (!p.heard) {
      p.heard = true;
      heard_.push_back(&p);
    }
    messages_in_.store(messages_in_.load(std::memory_order_relaxed) + handed,
                       std::memory_order_relaxed);
    bytes_in_.store(bytes_in_.load(std::memory_order_relaxed) + used, std::memory_order_relaxed);
  }
  if (p.dropped.load(std::memory_order_relaxed)) return handed;
  if (more) {
    add_turn(p);
  } else if (p.c->is_complete()) {
    lose(p, "has left");
  }
  return handed;
}

// Sends what the packets that have arrived allow or demand.
void udp_transport::answer(std::int64_t now_ns) {
  for (peer* const p : heard_) {
    const std::lock_guard held(p->lock);
    p->heard = false;
    pump(*p, now_ns);
  }
  heard_.clear();
}

void udp_transport::report_losses(receiver& r) {
  for (const auto& p : peers_.all()) {
    if (p->reported || !p->lost.load(std::memory_order_acquire)) continue;
    if (p->queued) {  // not all of it is handed over
      losses_.store(true, std::memory_order_relaxed);
      continue;
    }
    p->reported = true;
    {
      const std::lock_guard held(p->lock);
      p->give_back_memory();
    }
    if (!p->dropped.load(std::memory_order_relaxed)) r.on_lost(p->id, p->why);
  }
}

transport::traffic udp_transport::counted() const noexcept {
  traffic t;
  for (const auto& p : peers_.all()) {
    const std::lock_guard held(p->lock);
    t.messages_out += p->messages_out;
    t.bytes_out += p->bytes_out;
    t.writes += p->writes;
  }
  t.messages_in = messages_in_.load(std::memory_order_relaxed);
  t.bytes_in = bytes_in_.load(std::memory_order_relaxed);
  t.wakes = sender_.wakes.load(std::memory_order_relaxed) +
            receiver_.wakes.load(std::memory_order_relaxed);
  return t;
}

}  // namespace strata::net::udp
