// SPDX-License-Identifier: Apache-2.0
// Connections over UDP that are made again: what the nodes say about them goes by the same sockets
// as all else, and each pair keeps its place (peer.hpp), which begins with other keys.
#include <array>
#include <mutex>
#include <utility>

#include "net/udp/peer.hpp"
#include "net/udp/udp_transport.hpp"
#include "os/clock.hpp"

namespace strata::net::udp {

namespace {

// How often a node says that it does without a connection: nobody answers that.
constexpr int refusals = 3;

}  // namespace

class udp_transport::agreed_renewal final : public renewal {
 public:
  agreed_renewal(udp_transport& t, peer& p, renewal_handshake::terms nonces)
      : t_(t), p_(p), nonces_(std::move(nonces)) {}
  ~agreed_renewal() override {
    if (!is_used_) t_.refuse(p_, nonces_);
  }
  [[nodiscard]] bool begin() override {
    is_used_ = t_.renew(p_, nonces_);
    return is_used_;
  }

 private:
  udp_transport& t_;
  peer& p_;
  const renewal_handshake::terms nonces_;
  bool is_used_ = false;
};

void udp_transport::tell(renewals::hands* h) {
  const std::lock_guard held(inbox_);
  told_ = h;
}

void udp_transport::ask(node_id n) {
  peer& p = peers_.at(n);
  const std::int64_t now_ns = os::now_ns();
  const std::lock_guard held(p.lock);
  p.meets.ask(now_ns);
  look_after_words(p, now_ns);
}

// Anybody may have sent this, too.
void udp_transport::take_word(std::span<const std::byte> datagram, std::int64_t now_ns) {
  word_head head;
  word w;
  peer* const p = read_word_head(datagram, head) ? peers_.find(head.source) : nullptr;
  if (told_ == nullptr || p == nullptr || head.destination != settings_.self ||
      head.number < p->next_word_in || !read_word(datagram, p->opens_words, w)) {
    refused_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  p->next_word_in = head.number + 1;
  const std::lock_guard held(p->lock);
  note(*p, p->meets.on_word(w, now_ns));
  look_after_words(*p, now_ns);
}

void udp_transport::look_after_words(peer& p, std::int64_t now_ns) {
  note(p, p.meets.on_time(now_ns));
  for (word w; p.meets.next_word(now_ns, w);) {
    std::array<std::byte, word_bytes + tag_bytes> datagram;
    const std::size_t size =
        write_word(w, settings_.self, p.id, p.next_word_out++, p.closes_words, datagram);
    (void)p.socket.send(p.to, datagram, std::span(&size, 1));
  }
  plan(p, now_ns);
}

void udp_transport::note(peer& p, renewal_handshake::outcome what) {
  if (what == renewal_handshake::outcome::none) return;
  p.untold = what;
  if (what == renewal_handshake::outcome::met) p.agreed = p.meets.agreed();
  // Whoever polls next tells of it.
  meetings_.store(true, std::memory_order_release);
  receiver_.ring();
}

void udp_transport::report_meetings() {
  for (const auto& p : peers_.all()) {
    renewal_handshake::outcome what = renewal_handshake::outcome::none;
    renewal_handshake::terms nonces;
    {
      const std::lock_guard held(p->lock);
      what = std::exchange(p->untold, renewal_handshake::outcome::none);
      if (what == renewal_handshake::outcome::met) nonces = p->agreed;
    }
    if (what == renewal_handshake::outcome::met)
      told_->on_met(p->id, std::make_unique<agreed_renewal>(*this, *p, std::move(nonces)));
    else if (what == renewal_handshake::outcome::not_met)
      told_->on_not_met(p->id);
  }
}

bool udp_transport::renew(peer& p, const renewal_handshake::terms& nonces) {
  // As its owner, or beside the sender thread.
  std::unique_lock polling(inbox_, std::defer_lock);
  if (!hands_over_) polling.lock();
  if (p.served) return false;
  const std::lock_guard held(p.lock);
  // Nobody may have looked since it has ended.
  lose(p, "was replaced");
  p.begin(settings_, nonces);
  // How much there is room for at the other end, which may begin later.
  p.c->ping();
  pump(p, os::now_ns());
  return true;
}

void udp_transport::refuse(peer& p, const renewal_handshake::terms& nonces) {
  const std::lock_guard held(p.lock);
  p.declined.emplace(settings_, p.id, nonces);
  for (int i = 0; i < refusals; ++i) say_declined(p);
}

// The other end may begin with it only now, when it has dropped what refuse() has said under keys
// that it did not use yet. What it says first it repeats until it is answered. To an end nobody
// answers: if both do without it, neither would come to one.
void udp_transport::answer_declined(peer& p, std::span<const std::byte> datagram,
                                    const packet_head& head) {
  if ((head.flags & is_end) != 0) return;
  const std::lock_guard held(p.lock);
  if (p.declined && p.declined->opens.is_whole(datagram, head.number)) say_declined(p);
}

// Each time the same, so the number is not used for another text.
void udp_transport::say_declined(const peer& p) const {
  packet last;
  last.source = settings_.self;
  last.destination = p.id;
  last.flags = is_end;
  std::array<std::byte, data_overhead_bytes + tag_bytes> datagram;
  const std::size_t bytes = write_packet(last, datagram);
  p.declined->closes.close(datagram, bytes, last.number);
  const std::size_t size = bytes + tag_bytes;
  (void)p.socket.send(p.to, datagram, std::span(&size, 1));
}

}  // namespace strata::net::udp
