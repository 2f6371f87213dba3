// SPDX-License-Identifier: Apache-2.0
// What a transport over UCX knows of itself and of its peers, and which of it is under the lock.
// One file for each of the things it does: joining.cpp, outgoing.cpp, batches.cpp, incoming.cpp,
// blocks.cpp, registration.cpp, sleeping.cpp.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "net/attendance.hpp"
#include "net/doorbell.hpp"
#include "net/peer_table.hpp"
#include "net/ucx/arrivals.hpp"
#include "net/ucx/in_order.hpp"
#include "net/ucx/pass.hpp"
#include "net/ucx/registered_blocks.hpp"
#include "net/ucx/send_buffers.hpp"
#include "net/ucx/settle_clock.hpp"
#include "net/ucx/turn_lock.hpp"
#include "net/ucx/ucx_transport.hpp"
#include "net/ucx/worker.hpp"
#include "os/descriptor.hpp"

namespace strata::net::ucx {

// UCX's numbers of our active messages. All of a peer's but blocks are of one sequence.
enum what : unsigned {
  is_message,
  is_hello,  // the first: this way works
  is_bye,    // the last: the node leaves
  is_probe,  // says nothing; see settle()
  is_block,  // bytes that are expected: by rendezvous
  is_batch,  // messages, each with a head of its own
  whats
};

inline constexpr std::int64_t never_ns = std::numeric_limits<std::int64_t>::max();

struct ucx_transport::state final : transfers {
  enum class knowledge : unsigned char { none, no, yes };
  struct peer {
    peer(state& of_, node_id id_)
        : of(of_),
          id(id_),
          pass_in(pass_of(of_.s.key, of_.s.job, id_, of_.s.self)),
          pass_out(pass_of(of_.s.key, of_.s.job, of_.s.self, id_)),
          quick(of_.s.burst_gap_ns) {}
    state& of;
    const node_id id;
    const std::uint64_t pass_in, pass_out;
    std::atomic<bool> lost{false};     // nothing goes out any more
    std::atomic<bool> dropped{false};  // and its loss is no news

    // Under the lock.
    ucp_ep_h endpoint = nullptr;
    bool greeted = false;  // its hello has come
    in_order order;        // of what it sends
    std::uint32_t next_sequence = 0;
    burst quick;                    // of what goes to it
    std::unique_ptr<parcel> batch;  // waits for more; has something in it
    std::int64_t batch_due_ns = 0;
    std::uint64_t batch_due_ticks = 0;  // the same
    std::size_t in_flight_bytes = 0;
    unsigned pending = 0;       // messages that UCX has not sent
    bool unsettled = false;     // UCX may hold the end of what it says it has sent
    bool refused = false;       // somebody was told would_block since there was room last
    bool flush_wanted = false;  // flush() said no
    std::string why;            // it is lost; does not change any more once it is
    std::uint64_t messages_out = 0, bytes_out = 0, writes = 0;
    std::unordered_map<std::uint64_t, std::span<std::byte>> expected;  // that have not begun
    std::size_t blocks = 0;  // that UCX has begun, from here and there
    bool is_broken = false;  // UCX says so, and lets go of its blocks by itself

    void count(const header& h) noexcept {
      ++messages_out;
      bytes_out += sizeof h + h.length;
    }

    // Whether its memory is read by devices; unknown until it is worth knowing.
    std::atomic<knowledge> devices_read{knowledge::none};
  };
  // A block that UCX has begun.
  struct block {
    peer* with;
    std::uint64_t number;  // by which poll() calls it
    news word;             // what it tells then
    std::size_t bytes;
    block_head head;  // of one that is given: UCX reads it until the end
    std::shared_ptr<registered_block> registered{};  // whose handle UCX uses
  };
  // What UCX calls us with: which of our active messages it is.
  struct handler {
    state* of;
    unsigned what;
  };

  explicit state(const settings& given);
  ~state() { leave(); }
  state(const state&) = delete;
  state& operator=(const state&) = delete;

  // ---- joining.cpp ----

  void connect(const std::vector<launch::address>& directory, std::int64_t deadline_ns,
               const tidings& meanwhile);
  void connect_where_possible(const std::vector<launch::address>& directory,
                              std::int64_t deadline_ns, const tidings& meanwhile);
  // Until then, or until `is_over` says so of those who have not been heard of, lost or not.
  // Returns them. With who_hears those only count as heard of to whom this node's hello has gone.
  enum class wanted { all, who_hears };
  template <class F>
  std::vector<peer*> greet(std::unique_lock<turn_lock>& held, std::int64_t deadline_ns,
                           const tidings& meanwhile, wanted who, F is_over);
  void admit(node_id n, const launch::address& where);
  void open(peer& p, const std::string& address);
  void leave() noexcept;

  // ---- outgoing.cpp; the caller holds the lock ----

  [[nodiscard]] send_outcome send(peer& p, what kind, header h, std::span<const std::byte> head,
                                  std::span<const std::byte> body);
  [[nodiscard]] send_outcome hand_over(peer& p, what kind, std::unique_ptr<parcel> m);
  void sent(parcel* m);
  void unsettle(peer& p);
  // The caller, who holds no lock, is none of the watchers any more.
  void stop_watching();
  // The sender is to settle() in a while, unless it is to already.
  void settle_soon();
  void settle();
  void room_is_made() noexcept {
    room_made = true;
    wake(sender_bell);
  }

  // ---- batches.cpp; the caller holds the lock ----

  [[nodiscard]] send_outcome add_to_batch(peer& p, const header& h, std::span<const std::byte> head,
                                          std::span<const std::byte> body, std::uint64_t now_ticks);
  // What waits goes out, before anything else does.
  send_outcome send_batch(peer& p);
  // Those that are due, and those whose burst is over: was, when the caller got the lock, which
  // others may have waited for since. Returns when the next one is due; never_ns: none.
  std::int64_t send_due_batches(std::uint64_t locked_ticks);
  void give_up_batch(peer& p) noexcept;

  // ---- incoming.cpp; the caller holds the lock ----

  ucs_status_t arrived(unsigned what, std::byte* data, std::size_t bytes, std::uint64_t attributes);
  void batch_arrived(std::span<std::byte> all);
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

  // ---- blocks.cpp ----

  // For whoever holds no lock.
  [[nodiscard]] std::size_t bytes_min(node_id n) noexcept override;
  [[nodiscard]] bool expect(node_id n, std::uint64_t number, std::span<std::byte> into) override;
  [[nodiscard]] bool withdraw(node_id n, std::uint64_t number) noexcept override;
  [[nodiscard]] bool give(node_id n, std::uint64_t number, std::span<const std::byte> bytes,
                          std::uint64_t own_number) override;
  // The caller holds the lock.
  [[nodiscard]] block* begin(peer& p, std::uint64_t number, news word, std::size_t bytes);
  // UCX has no more use for its memory.
  void end(block* done, ucs_status_t status);
  // UCX says so, of a request whose block this is.
  static void ended(void* request, ucs_status_t status, void* what);
  // One of a peer's has come, or stays there until it is fetched.
  ucs_status_t block_comes(const void* head, std::size_t head_bytes, void* data, std::size_t bytes,
                           std::uint64_t attributes);
  void give_up_blocks(peer& p);
  // Not from within a call of UCX's.
  void close_lost();
  // UCX has something to do that somebody has to see to.
  [[nodiscard]] bool is_busy() const noexcept { return pending + gives + lost_blocks != 0; }

  // ---- registration.cpp ----

  // How a registration, which may be there for longer, finds the state. Taken before the lock.
  struct link {
    explicit link(state& s) : to(&s) {}
    std::mutex mutex;
    state* to;  // null: it has ended
  };
  class mapped_memory;
  // For whoever holds no lock.
  [[nodiscard]] std::unique_ptr<registration> register_memory(std::span<std::byte> bytes) override;
  void end_registration(const std::shared_ptr<registered_block>& b) noexcept;
  void end_registrations() noexcept;
  // The caller holds the lock. What UCX is about to be asked for uses the handle of its memory, if
  // that is registered, until the end() of b.
  void use_registration(block& b, std::span<const std::byte> bytes, ucp_request_param_t& how);
  // Not from within a call of UCX's.
  void unmap_ended() noexcept;

  // ---- sleeping.cpp ----

  // With the lock. No more is fetched for a receiver that does not come for it.
  [[nodiscard]] bool is_full() const noexcept;
  // With the lock: while UCX has something to send, the sender's. True: there may be more.
  bool fetch_for_receiver();
  // With the lock. True: there is nothing to do, and the worker's descriptor tells when there is.
  [[nodiscard]] bool may_sleep() { return w.arm(); }
  // Any thread.
  void wake(doorbell& who) noexcept {
    if (who.ring()) wakes.fetch_add(1, std::memory_order_relaxed);
  }

  const settings s;
  const ucp_library& ucp;
  const std::shared_ptr<link> way_here = std::make_shared<link>(*this);
  doorbell receiver_bell, sender_bell;
  std::array<handler, whats> handlers;
  peer_table<peer> peers;

  mutable turn_lock lock;
  send_buffers outgoing;
  arrivals filling;
  unsigned pending = 0;  // messages of peers that are not lost
  unsigned batches = 0;  // peers that have one
  // The sender sleeps until then, or is about to; 0: it is awake, and looks before it sleeps.
  std::int64_t sender_until_ns = 0;
  std::size_t gives = 0;        // blocks that peers have not got
  std::size_t lost_blocks = 0;  // to and from lost peers, that UCX has not let go of
  bool somebody_to_close = false;
  registered_blocks registered;
  std::size_t mapped = 0;  // for tests: handles that UCX has given
  bool unsettled = false;  // of any peer
  settle_clock settling;
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
  const os::descriptor receiver_sleeps;
  attendance attendants;
  const os::descriptor sender_sleeps, sender_watches;
};

}  // namespace strata::net::ucx
