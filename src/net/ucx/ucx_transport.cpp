// SPDX-License-Identifier: Apache-2.0
#include "net/ucx/ucx_transport.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <utility>

#include "base/errno_error.hpp"
#include "net/doorbell.hpp"
#include "net/ucx/arrivals.hpp"
#include "net/ucx/in_order.hpp"
#include "net/ucx/parcels.hpp"
#include "net/ucx/turn_lock.hpp"
#include "net/ucx/worker.hpp"
#include "net/wait_for_events.hpp"
#include "os/clock.hpp"
#include "os/descriptor.hpp"
#include "strata/detail/check.hpp"
#include "strata/error.hpp"

namespace strata::net::ucx {

namespace {

// UCX's numbers of our active messages. All of a peer's are of one sequence.
enum what : unsigned {
  is_message,
  is_hello,  // the first: this way works
  is_bye,    // the last: the node leaves
  is_probe,  // says nothing; see settle()
  whats
};

// The sender thread fetches no more than this for a receiver that does not come for it.
constexpr std::size_t arrivals_bytes_max = std::size_t{4} << 20;
// Larger ones stay in UCX's memory until they are handled, if UCX allows.
constexpr std::size_t copy_bytes_max = 1024;
// A poll that finds nothing yet, but sees UCX work, tries again so often.
constexpr int progress_rounds = 4;
// How long the end of what was sent may wait in UCX when nobody looks after it.
constexpr std::int64_t settle_ns = 1'000'000;
// How long leaving waits for what UCX has not sent.
constexpr std::int64_t leave_ns_max = 20'000'000;
// And then for UCX to let go of its connections, which it does by itself.
constexpr std::int64_t close_ns_max = 1'000'000'000;
constexpr std::size_t missing_named_max = 8;

ucs_status_t status_of(ucs_status_ptr_t returned) { return UCS_PTR_STATUS(returned); }

os::descriptor epoll_of(std::initializer_list<int> descriptors) {
  os::descriptor all(::epoll_create1(EPOLL_CLOEXEC));
  if (!all) throw errno_error("cannot make an epoll descriptor", errno);
  for (const int fd : descriptors) {
    epoll_event event{};
    event.events = EPOLLIN;
    if (::epoll_ctl(all.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
      throw errno_error("cannot watch a descriptor of UCX", errno);
    }
  }
  return all;
}

}  // namespace

struct ucx_transport::state {
  struct peer {
    peer(state& of_, node_id id_) : of(of_), id(id_) {}
    state& of;
    const node_id id;
    std::uint64_t pass_in = 0, pass_out = 0;
    std::atomic<bool> lost{false};     // nothing goes out any more
    std::atomic<bool> dropped{false};  // and its loss is no news

    // Under the lock.
    ucp_ep_h endpoint = nullptr;
    bool greeted = false;  // its hello has come
    in_order order;        // of what it sends
    std::uint32_t next_sequence = 0;
    std::size_t in_flight_bytes = 0;
    unsigned pending = 0;       // messages that UCX has not sent
    bool unsettled = false;     // UCX may hold the end of what it says it has sent
    bool refused = false;       // somebody was told would_block since there was room last
    bool flush_wanted = false;  // flush() said no
    std::string why;            // it is lost; does not change any more once it is
    std::uint64_t messages_out = 0, bytes_out = 0;
  };
  // What UCX calls us with: which of our active messages it is.
  struct handler {
    state* of;
    unsigned what;
  };

  explicit state(const settings& given)
      : s(given),
        ucp(ucp_library::get()),
        w(given.devices),
        receiver_sleeps(epoll_of({receiver_bell.get(), w.event_descriptor()})),
        sender_sleeps(epoll_of({sender_bell.get()})),
        sender_watches(epoll_of({sender_bell.get(), w.event_descriptor()})) {
    for (unsigned n = 0; n < s.nodes; ++n) {
      const auto id = static_cast<node_id>(n);
      peers.push_back(n == s.self ? nullptr : std::make_unique<peer>(*this, id));
      if (n == s.self) continue;
      peers.back()->pass_in = pass_of(s.key, s.job, id, s.self);
      peers.back()->pass_out = pass_of(s.key, s.job, s.self, id);
    }
    for (unsigned i = 0; i < whats; ++i) {
      handlers[i] = {this, i};
      ucp_am_handler_param_t p{};
      p.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                     UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
      p.id = i;
      p.flags = UCP_AM_FLAG_WHOLE_MSG;
      p.cb = [](void* arg, const void*, std::size_t, void* data, std::size_t bytes,
                const ucp_am_recv_param_t* how) {
        const handler& h = *static_cast<const handler*>(arg);
        return h.of->arrived(h.what, static_cast<std::byte*>(data), bytes, how->recv_attr);
      };
      p.arg = &handlers[i];
      const ucs_status_t status = ucp.ucp_worker_set_am_recv_handler(w.handle(), &p);
      if (status != UCS_OK) {
        throw error(std::string("UCX takes no handler: ") + ucp.ucs_status_string(status));
      }
    }
  }
  ~state() { leave(); }

  [[nodiscard]] bool reaches(node_id n) const noexcept {
    return n < peers.size() && peers[n] != nullptr;
  }
  [[nodiscard]] peer& at(node_id n) const {
    STRATA_CHECK(reaches(n), n, peers.size());
    return *peers[n];
  }

  // ---- joining and leaving ----

  void connect(const std::vector<std::string>& addresses, std::int64_t deadline_ns);
  void open(peer& p, const std::string& address);
  void leave() noexcept;

  // ---- out; the caller holds the lock ----

  [[nodiscard]] send_outcome send(peer& p, what kind, header h, std::span<const std::byte> head,
                                  std::span<const std::byte> body);
  void sent(parcel* m);
  void unsettle(peer& p);
  void settle();
  void room_is_made() noexcept {
    room_made = true;
    (void)sender_bell.ring();
  }

  // ---- in; the caller holds the lock ----

  ucs_status_t arrived(unsigned what, std::byte* data, std::size_t bytes, std::uint64_t attributes);
  // True: what UCX calls `whole` is kept until the payload in it has been handled. Null: it cannot
  // be.
  bool accept(peer& p, unsigned what, const header& h, std::span<const std::byte> payload,
              void* whole);
  void lose(peer& p, const std::string& why);
  void lose_because_of(peer& p, ucs_status_t status) {
    lose(p, std::string("UCX reports: ") + ucp.ucs_status_string(status));
  }
  // Empties it; UCX gets its memory again.
  void give_back(arrivals& from) {
    for (std::size_t i = 0; i < from.size(); ++i) {
      if (from[i].held != nullptr) ucp.ucp_am_data_release(w.handle(), from[i].held);
    }
    from.clear();
  }
  // Fetches what has arrived into `draining`. Takes the lock.
  void refill();
  // True: there is nothing to do, and the worker's descriptor tells when there is.
  [[nodiscard]] bool may_sleep() { return w.arm(); }

  const settings s;
  const ucp_library& ucp;
  doorbell receiver_bell, sender_bell;
  std::array<handler, whats> handlers;
  std::vector<std::unique_ptr<peer>> peers;  // index: node; null: this one

  mutable turn_lock lock;
  parcels outgoing;
  arrivals filling;
  unsigned pending = 0;           // messages of peers that are not lost
  bool unsettled = false;         // of any peer
  std::int64_t settle_at_ns = 0;  // 0: the sender need not think of it
  bool room_made = false;         // wait_for_room() has something to tell
  bool sender_attends = false;    // it sleeps on the worker's descriptor
  bool sender_stands_by = false;  // until somebody fetches what has arrived
  std::atomic<bool> sender_called{false};
  // Threads that sleep on the worker's descriptor, or poll often: what UCX holds goes out.
  std::atomic<int> watchers{0};

  // Whoever polls.
  arrivals draining;
  std::size_t next = 0;
  std::atomic<bool> unfinished{false};  // the last poll() has left something
  std::atomic<std::uint64_t> messages_in{0}, bytes_in{0}, wakes{0};

  // After all that it calls us about, so that it goes first.
  worker w;
  const os::descriptor receiver_sleeps, sender_sleeps, sender_watches;
};

// ---- joining and leaving ----

void ucx_transport::state::open(peer& p, const std::string& address) {
  if (address.empty()) throw error("node " + std::to_string(p.id) + " has no UCX address");
  ucp_ep_params_t how{};
  how.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                   UCP_EP_PARAM_FIELD_ERR_HANDLER;
  how.address = reinterpret_cast<const ucp_address_t*>(address.data());
  how.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  how.err_handler.cb = [](void* arg, ucp_ep_h, ucs_status_t status) {
    peer& broken = *static_cast<peer*>(arg);
    broken.of.lose_because_of(broken, status);
  };
  how.err_handler.arg = &p;
  const ucs_status_t status = ucp.ucp_ep_create(w.handle(), &how, &p.endpoint);
  if (status != UCS_OK) {
    p.endpoint = nullptr;
    throw error("UCX cannot reach node " + std::to_string(p.id) + ": " +
                ucp.ucs_status_string(status) + " (UCX_TLS, UCX_NET_DEVICES?)");
  }
}

void ucx_transport::state::connect(const std::vector<std::string>& addresses,
                                   std::int64_t deadline_ns) {
  STRATA_CHECK(addresses.size() == peers.size(), addresses.size(), peers.size());
  std::unique_lock held(lock);
  for (const auto& p : peers) {
    if (!p) continue;
    open(*p, addresses[p->id]);
    (void)send(*p, is_hello, {}, {}, {});
  }
  for (;;) {
    while (w.progress()) {
    }
    std::string missing;
    std::size_t named = 0;
    bool all = true;
    for (const auto& p : peers) {
      if (!p || (p->greeted && !p->lost.load(std::memory_order_relaxed))) continue;
      if (p->lost.load(std::memory_order_relaxed)) {
        throw error("cannot join node " + std::to_string(p->id) + " over UCX: " + p->why);
      }
      all = false;
      if (++named > missing_named_max) continue;
      missing += (missing.empty() ? "node " : ", node ") + std::to_string(p->id);
    }
    if (all) return;
    const std::int64_t left_ns = deadline_ns - os::now_ns();
    if (left_ns <= 0) {
      if (named > missing_named_max) {
        missing += " and " + std::to_string(named - missing_named_max) + " more";
      }
      throw error("node " + std::to_string(s.self) + " waited in vain for " + missing +
                  ": not heard of over UCX within the time limit (UCX_TLS, UCX_NET_DEVICES?)");
    }
    if (!may_sleep()) continue;
    held.unlock();
    epoll_event event;
    wait_for_events(receiver_sleeps.get(), &event, 1, left_ns);
    held.lock();
  }
}

void ucx_transport::state::leave() noexcept {
  const std::lock_guard held(lock);
  give_back(draining);
  const std::int64_t end_ns = os::now_ns() + leave_ns_max;
  for (const auto& p : peers) {
    if (!p || p->endpoint == nullptr || p->lost.load(std::memory_order_relaxed)) continue;
    (void)send(*p, is_bye, {}, {}, {});
  }
  while (pending != 0 && os::now_ns() < end_ns) (void)w.progress();
  std::vector<ucs_status_ptr_t> closing;
  for (const auto& p : peers) {
    if (!p || p->endpoint == nullptr) continue;
    p->lost.store(true, std::memory_order_relaxed);
    ucp_request_param_t how{};
    how.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    how.flags = UCP_EP_CLOSE_FLAG_FORCE;
    const ucs_status_ptr_t request = ucp.ucp_ep_close_nbx(p->endpoint, &how);
    p->endpoint = nullptr;
    if (UCS_PTR_IS_PTR(request)) closing.push_back(request);
  }
  for (const ucs_status_ptr_t request : closing) {
    while (ucp.ucp_request_check_status(request) == UCS_INPROGRESS &&
           os::now_ns() < end_ns + close_ns_max) {
      (void)w.progress();
    }
    ucp.ucp_request_free(request);
  }
  give_back(filling);
}

// ---- out ----

send_outcome ucx_transport::state::send(peer& p, what kind, header h,
                                        std::span<const std::byte> head,
                                        std::span<const std::byte> body) {
  if (p.lost.load(std::memory_order_relaxed)) return send_outcome::lost;
  h.length = static_cast<std::uint32_t>(head.size() + body.size());
  h.source = s.self;
  h.destination = p.id;
  const std::size_t bytes = sizeof(wire_head) + h.length;
  if (kind == is_message && p.in_flight_bytes != 0 &&
      p.in_flight_bytes + bytes > s.in_flight_bytes_max) {
    p.refused = true;
    return send_outcome::would_block;
  }
  h.sequence = p.next_sequence;
  std::unique_ptr<parcel> m = outgoing.take({h, p.pass_out}, head, body);
  m->peer = &p;
  m->is_message = kind == is_message;
  ucp_request_param_t how{};
  how.op_attr_mask =
      UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  how.flags = UCP_AM_SEND_FLAG_EAGER;  // a rendezvous would be overtaken by what comes after it
  how.cb.send = [](void* request, ucs_status_t, void* user) {
    parcel* const done = static_cast<parcel*>(user);
    state& of = static_cast<peer*>(done->peer)->of;
    of.ucp.ucp_request_free(request);
    of.sent(done);
  };
  how.user_data = m.get();
  const ucs_status_ptr_t request =
      ucp.ucp_am_send_nbx(p.endpoint, kind, nullptr, 0, m->bytes.get(), m->size, &how);
  if (UCS_PTR_IS_ERR(request)) {
    outgoing.put_back(std::move(m));
    lose_because_of(p, status_of(request));
    return send_outcome::lost;
  }
  ++p.next_sequence;
  if (kind == is_message) {
    ++p.messages_out;
    p.bytes_out += sizeof h + h.length;
  }
  if (request == nullptr) {
    outgoing.put_back(std::move(m));
    if (kind == is_message) unsettle(p);
    return send_outcome::sent;
  }
  p.in_flight_bytes += m->size;
  (void)m.release();  // sent() gets it
  ++p.pending;
  ++pending;
  // It goes out when somebody calls UCX again.
  if (!sender_attends) (void)sender_bell.ring();
  return send_outcome::staged;
}

// UCX has no more use for the message.
void ucx_transport::state::sent(parcel* done) {
  std::unique_ptr<parcel> m(done);
  peer& p = *static_cast<peer*>(m->peer);
  p.in_flight_bytes -= m->size;
  const bool was_message = m->is_message;
  outgoing.put_back(std::move(m));
  --p.pending;
  if (p.lost.load(std::memory_order_relaxed)) return;  // and not counted any more
  --pending;
  if (p.pending == 0 && was_message) unsettle(p);
  if (p.pending == 0 && std::exchange(p.flush_wanted, false)) room_is_made();
  if (p.refused && p.in_flight_bytes <= s.in_flight_bytes_max / 2) {
    p.refused = false;
    room_is_made();
  }
}

// UCX says of a message that it is sent when it has copied it, and may hold its end until the
// socket takes it. Whoever watches the worker's descriptor gives it another push; if nobody does,
// the sender has to.
void ucx_transport::state::unsettle(peer& p) {
  p.unsettled = unsettled = true;
  if (settle_at_ns != 0 || watchers.load(std::memory_order_relaxed) != 0) return;
  settle_at_ns = os::now_ns() + settle_ns;
  (void)sender_bell.ring();
}

// The sender's: finds out whether something is held. A message that UCX takes at once had nothing
// before it; one that has to wait tells when it is out, and the sender attends until then. (UCX's
// own flush asks the peer for an answer, which may compute for a while.)
void ucx_transport::state::settle() {
  settle_at_ns = 0;
  if (watchers.load(std::memory_order_relaxed) != 0) return;
  unsettled = false;
  for (const auto& p : peers) {
    if (!p || !std::exchange(p->unsettled, false)) continue;
    if (p->pending == 0) (void)send(*p, is_probe, {}, {}, {});
  }
}

// ---- in ----

ucs_status_t ucx_transport::state::arrived(unsigned what, std::byte* data, std::size_t bytes,
                                           std::uint64_t attributes) {
  // Anybody may have sent this. UCS_OK gives the memory back, whatever it was.
  wire_head from;
  if (bytes < sizeof from || (attributes & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0) return UCS_OK;
  std::memcpy(&from, data, sizeof from);
  bytes -= sizeof from;
  const header& h = from.h;
  if (!reaches(h.source) || from.pass != peers[h.source]->pass_in) return UCS_OK;
  // A node of the job has.
  peer& p = *peers[h.source];
  if (p.lost.load(std::memory_order_relaxed)) return UCS_OK;
  if (h.destination != s.self || h.length != bytes || bytes > payload_bytes_max) {
    lose(p, "sent a malformed header");
    return UCS_OK;
  }
  if (!p.order.is_next(h.sequence)) {
    if (!p.order.keep(what, h, {data + sizeof from, bytes})) {
      lose(p, "sent a message out of order");
    }
    return UCS_OK;
  }
  p.order.advance();
  const bool may_hold = (attributes & UCP_AM_RECV_ATTR_FLAG_DATA) != 0;
  const bool holds = accept(p, what, h, {data + sizeof from, bytes}, may_hold ? data : nullptr);
  while (auto early = p.order.take()) {
    p.order.advance();
    (void)accept(p, early->what, early->h, early->payload, nullptr);
  }
  return holds ? UCS_INPROGRESS : UCS_OK;
}

bool ucx_transport::state::accept(peer& p, unsigned what, const header& h,
                                  std::span<const std::byte> payload, void* whole) {
  switch (what) {
    case is_hello:
      p.greeted = true;
      return false;
    case is_bye:
      lose(p, "has left");
      return false;
    case is_probe:
      return false;
    default:
      break;
  }
  if (whole != nullptr && h.length > copy_bytes_max) {
    filling.hold(h, payload, whole);
    return true;
  }
  filling.copy(h, payload);
  return false;
}

void ucx_transport::state::lose(peer& p, const std::string& why) {
  if (p.lost.load(std::memory_order_relaxed)) return;
  p.why = why;
  p.lost.store(true, std::memory_order_release);
  pending -= p.pending;
  p.refused = p.flush_wanted = false;
  if (!p.dropped.load(std::memory_order_relaxed)) filling.lose(p.id);
  if (receiver_bell.ring()) wakes.fetch_add(1, std::memory_order_relaxed);
  room_is_made();
}

void ucx_transport::state::refill() {
  lock.give_way();
  const std::lock_guard held(lock);
  give_back(draining);
  next = 0;
  for (int i = 0; i < progress_rounds && filling.empty(); ++i) {
    if (!w.progress()) break;
  }
  std::swap(filling, draining);
  if (std::exchange(sender_stands_by, false)) (void)sender_bell.ring();
}

// ---- the transport ----

ucx_transport::ucx_transport(const settings& s) : state_(std::make_unique<state>(s)) {}
ucx_transport::~ucx_transport() = default;

const std::string& ucx_transport::address() const noexcept { return state_->w.address(); }

void ucx_transport::connect(const std::vector<std::string>& addresses, std::int64_t deadline_ns) {
  state_->connect(addresses, deadline_ns);
}

bool ucx_transport::reaches(node_id n) const noexcept { return state_->reaches(n); }

send_outcome ucx_transport::try_send(node_id n, header h, std::span<const std::byte> head,
                                     std::span<const std::byte> body) {
  state& t = *state_;
  state::peer& p = t.at(n);
  STRATA_DCHECK(h.source == t.s.self, h.source, t.s.self);
  STRATA_DCHECK(h.destination == n, h.destination, n);
  STRATA_CHECK(head.size() + body.size() <= payload_bytes_max, head.size(), body.size());
  if (p.lost.load(std::memory_order_acquire)) return send_outcome::lost;
  const std::lock_guard held(t.lock);
  return t.send(p, is_message, h, head, body);
}

bool ucx_transport::flush(node_id n) {
  state& t = *state_;
  state::peer& p = t.at(n);
  const std::lock_guard held(t.lock);
  if (p.pending == 0 || p.lost.load(std::memory_order_relaxed)) return true;
  p.flush_wanted = true;
  return false;
}

std::size_t ucx_transport::poll(receiver& r, std::size_t messages_max) {
  state& t = *state_;
  if (t.next == t.draining.size()) t.refill();
  std::size_t handed = 0;
  std::uint64_t bytes = 0;
  while (handed < messages_max && t.next < t.draining.size()) {
    const arrival& a = t.draining[t.next++];
    const state::peer& p = *t.peers[a.h.source];
    if (p.dropped.load(std::memory_order_relaxed)) continue;
    if (a.is_loss) {
      r.on_lost(p.id, p.why);
      continue;
    }
    ++handed;
    bytes += sizeof a.h + a.h.length;
    r.on_message(a.h, t.draining.payload(a));
  }
  const bool more = t.next < t.draining.size();
  t.unfinished.store(more, std::memory_order_release);
  // Nothing else tells a receiver that went to sleep before.
  if (more && t.receiver_bell.ring()) t.wakes.fetch_add(1, std::memory_order_relaxed);
  if (handed != 0) {
    t.messages_in.store(t.messages_in.load(std::memory_order_relaxed) + handed,
                        std::memory_order_relaxed);
    t.bytes_in.store(t.bytes_in.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
  }
  return handed;
}

void ucx_transport::wait_for_messages(std::int64_t timeout_ns) {
  state& t = *state_;
  if (t.unfinished.load(std::memory_order_acquire)) return;
  {
    const std::lock_guard held(t.lock);
    if (!t.filling.empty() || !t.may_sleep()) return;
  }
  // From here on the worker's descriptor tells, unless somebody else fetches what arrives: then he
  // rings.
  if (!t.receiver_bell.may_sleep()) return;
  t.watchers.fetch_add(1, std::memory_order_relaxed);
  epoll_event event;
  wait_for_events(t.receiver_sleeps.get(), &event, 1, timeout_ns);
  t.watchers.fetch_sub(1, std::memory_order_relaxed);
  t.receiver_bell.awake();
}

void ucx_transport::wake_receiver() noexcept {
  if (state_->receiver_bell.ring()) state_->wakes.fetch_add(1, std::memory_order_relaxed);
}

void ucx_transport::wait_for_room(std::int64_t timeout_ns) {
  state& t = *state_;
  const std::int64_t end_ns = timeout_ns < 0 ? 0 : os::now_ns() + timeout_ns;
  for (;;) {
    bool busy = false;  // UCX has something to send: we look after it
    bool again = false;
    std::int64_t settle_at_ns = 0;
    bool told = t.sender_called.exchange(false, std::memory_order_acquire);
    {
      const std::lock_guard held(t.lock);
      if (t.settle_at_ns != 0 && os::now_ns() >= t.settle_at_ns) t.settle();
      while (t.pending != 0 && t.filling.bytes() < arrivals_bytes_max && t.w.progress()) {
      }
      // Partner: wait_for_messages(), which may be asleep since before we fetched it.
      if (!t.filling.empty() && t.receiver_bell.ring()) {
        t.wakes.fetch_add(1, std::memory_order_relaxed);
      }
      told |= std::exchange(t.room_made, false);
      busy = t.pending != 0;
      if (busy && t.filling.bytes() >= arrivals_bytes_max) {
        t.sender_stands_by = true;  // refill() rings
        busy = false;
      }
      again = busy && !told && !t.may_sleep();
      t.sender_attends = busy && !told && !again;
      settle_at_ns = t.settle_at_ns;
    }
    if (told) return;
    if (again) continue;
    const std::int64_t now_ns = os::now_ns();
    std::int64_t left_ns = -1;
    if (timeout_ns >= 0) {
      left_ns = end_ns - now_ns;
      if (left_ns <= 0) break;
    }
    if (settle_at_ns != 0) {
      const std::int64_t until_ns = std::max<std::int64_t>(settle_at_ns - now_ns, 0);
      left_ns = left_ns < 0 ? until_ns : std::min(left_ns, until_ns);
    }
    if (!t.sender_bell.may_sleep()) continue;
    epoll_event event;
    wait_for_events((busy ? t.sender_watches : t.sender_sleeps).get(), &event, 1, left_ns);
    t.sender_bell.awake();
  }
  const std::lock_guard held(t.lock);
  t.sender_attends = false;
}

void ucx_transport::wake_sender() noexcept {
  state_->sender_called.store(true, std::memory_order_release);
  if (state_->sender_bell.ring()) state_->wakes.fetch_add(1, std::memory_order_relaxed);
}

void ucx_transport::attended() noexcept {
  state_->watchers.fetch_add(1, std::memory_order_relaxed);
}

void ucx_transport::unattended() noexcept {
  state& t = *state_;
  if (t.watchers.fetch_sub(1, std::memory_order_relaxed) != 1) return;
  const std::lock_guard held(t.lock);
  if (!t.unsettled || t.settle_at_ns != 0) return;
  t.settle_at_ns = os::now_ns() + settle_ns;
  (void)t.sender_bell.ring();
}

void ucx_transport::drop(node_id n) noexcept {
  state& t = *state_;
  if (!t.reaches(n)) return;
  state::peer& p = *t.peers[n];
  p.dropped.store(true, std::memory_order_relaxed);
  const std::lock_guard held(t.lock);
  t.lose(p, "was dropped");
}

transport::traffic ucx_transport::counted() const noexcept {
  const state& t = *state_;
  traffic all;
  {
    const std::lock_guard held(t.lock);
    for (const auto& p : t.peers) {
      if (!p) continue;
      all.messages_out += p->messages_out;
      all.bytes_out += p->bytes_out;
    }
  }
  all.writes = all.messages_out;  // as far as we know
  all.messages_in = t.messages_in.load(std::memory_order_relaxed);
  all.bytes_in = t.bytes_in.load(std::memory_order_relaxed);
  all.wakes = t.wakes.load(std::memory_order_relaxed);
  return all;
}

}  // namespace strata::net::ucx
