// SPDX-License-Identifier: Apache-2.0
// Messages over UDP, for networks that offer nothing else: cut into authenticated datagrams,
// acknowledged, sent again when lost, and no faster than the network takes them. It makes no
// threads; see transport.hpp for whose they are.
//
//   udp::udp_transport t(s);
//   ... the launcher's directory: t.address() ...
//   t.connect(directory, deadline_ns);
//
// What is due at a time (repetitions, acknowledgements that waited) is done by whoever sleeps in
// one of the two waits, or polls. If nobody polls while something is under way, the sender thread
// in wait_for_room() fetches what arrives; it is kept for the receiver. While nothing is under way
// nobody wakes.
//
// A peer is lost when it says that it leaves, when it breaks the protocol, or when it has answered
// nothing for silence_ns_max. Then the two may agree on another connection (renewals). The
// datagrams of strangers, and of nodes that have not been admitted yet, are counted, and never
// answered.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "net/addressed.hpp"
#include "net/attendance.hpp"
#include "net/burst.hpp"
#include "net/doorbell.hpp"
#include "net/peer_table.hpp"
#include "net/renewals.hpp"
#include "net/udp/packet.hpp"
#include "net/udp/renewal_handshake.hpp"
#include "net/udp/seal.hpp"
#include "net/udp/socket_set.hpp"
#include "net/wait_for_events.hpp"
#include "os/descriptor.hpp"

namespace strata::net::udp {

struct settings : job_part {
  std::vector<std::string> bind_addresses{"127.0.0.1"};  // of each network that is used
  std::size_t datagram_bytes = 0;  // of the largest; 0: what the path to the peer carries
  // Per peer: what waits for an acknowledgement, or to be sent; and what has arrived and was not
  // handed over. Each holds two messages of the largest size at least.
  std::size_t send_buffer_bytes = std::size_t{1} << 20;
  std::size_t receive_buffer_bytes = std::size_t{1} << 20;
  // Messages that follow each other within burst_gap_ns are collected, and leave once 64 KiB are
  // there or the first of them has waited for flush_deadline_ns.
  std::int64_t burst_gap_ns = burst::usual_gap_ns;
  std::int64_t flush_deadline_ns = burst::usual_deadline_ns;
  // A backstop: the launcher and the heartbeats above notice a dead node earlier, and it must not
  // be shorter than their limit. Long, because a node whose workers poll may compute for a while
  // without looking.
  std::int64_t silence_ns_max = 60'000'000'000;
};

class udp_transport final : public addressed_transport, public renewals {
 public:
  explicit udp_transport(const settings& s);
  // What was sent goes out and is repeated for a moment; peers hear that this node leaves.
  ~udp_transport() override;

  [[nodiscard]] launch::address address() const override;
  // The same for each of its addresses, in their order.
  [[nodiscard]] std::vector<launch::address> addresses() const;
  void admit(node_id node, const launch::address& where) override;

  [[nodiscard]] capabilities about() const noexcept override {
    return {.reliable = true, .name = "udp", .may_break = true};
  }
  [[nodiscard]] bool reaches(node_id peer) const noexcept override;
  [[nodiscard]] send_outcome try_send(node_id peer, header h, std::span<const std::byte> head,
                                      std::span<const std::byte> body) override;
  [[nodiscard]] bool flush(node_id peer) override;
  std::size_t poll(receiver& r, std::size_t messages_max) override;
  void wait_for_messages(std::int64_t timeout_ns) override;
  void wake_receiver() noexcept override;
  void wait_for_room(std::int64_t timeout_ns) override;
  void wake_sender() noexcept override;
  void attended() noexcept override { attendants_.begin(); }
  // A last look acknowledges what has come before its receiver computes.
  [[nodiscard]] bool unattended() noexcept override {
    (void)attendants_.end();
    return true;
  }
  void drop(node_id peer) noexcept override;
  [[nodiscard]] traffic counted() const noexcept override;

  [[nodiscard]] renewals* renews() noexcept override { return this; }
  void tell(renewals::hands* h) override;
  void ask(node_id n) override;

  // Fetches what has arrived and does what is due. Any thread; only needed where for long nobody
  // polls or waits.
  void tend();

  // Datagrams that no node of this job has sent to this one, or that were altered on their way.
  [[nodiscard]] std::uint64_t refused() const noexcept {
    return refused_.load(std::memory_order_relaxed);
  }

 private:
  struct peer;
  class agreed_renewal;
  // A thread of the node that sleeps, and does what is due meanwhile.
  struct sleeper {
    sleeper() : epoll(epoll_on({bell.get()})) {}
    explicit sleeper(int arrivals) : epoll(epoll_on({bell.get(), arrivals})) {}
    void alarm(std::int64_t due_ns, std::int64_t now_ns) noexcept;
    void ring() noexcept;

    doorbell bell;
    os::descriptor epoll;  // its bell, and the sockets if it waits for those
    std::atomic<std::int64_t> sleeps_until_ns{0};  // 0: it is awake
    std::atomic<bool> active{false};               // something became due since it looked
    std::atomic<std::uint64_t> wakes{0};
  };
  enum class slept { not_at_all, until_then, rung };

  // What arrives. With inbox_ held.
  std::size_t receive(std::int64_t now_ns);
  void take(std::span<const std::byte> datagram, std::int64_t now_ns);
  std::size_t serve(peer& p, receiver& r, std::size_t messages_max);
  [[nodiscard]] bool next_message(peer& p, std::span<const std::byte> data, header& h);
  void add_turn(peer& p);
  void answer(std::int64_t now_ns);
  void report_losses(receiver& r);
  // With inbox_ held: of connections that are made again.
  void take_word(std::span<const std::byte> datagram, std::int64_t now_ns);
  void report_meetings();
  [[nodiscard]] bool renew(peer& p, const renewal_handshake::terms& nonces);
  // This node does without that one.
  void refuse(peer& p, const renewal_handshake::terms& nonces);
  // What is not of the connection in use.
  void answer_declined(peer& p, std::span<const std::byte> datagram, const packet_head& head);
  // With p.lock held.
  void look_after_words(peer& p, std::int64_t now_ns);
  void note(peer& p, renewal_handshake::outcome what);
  void excuse_silence(peer& p, std::int64_t now_ns) noexcept;
  void plan(peer& p, std::int64_t now_ns);
  void pump(peer& p, std::int64_t now_ns);
  void look_after(peer& p, std::int64_t now_ns);
  // What was written, so many bytes, waits for more.
  [[nodiscard]] bool collects(peer& p, std::size_t bytes);
  void lose(peer& p, const std::string& why);
  // Time.
  [[nodiscard]] std::int64_t next_due_ns() const noexcept;
  void do_what_is_due(std::int64_t now_ns);
  void send_what_is_collected(std::int64_t now_ns);
  slept sleep(sleeper& s, int epoll, std::int64_t end_ns);
  bool fetch_for_receiver(std::int64_t now_ns);
  void room_is_made() noexcept;
  void watch(const datagram_socket& full) noexcept;
  void look(std::int64_t now_ns);
  // Who has not been heard of.
  struct absent {
    std::vector<peer*> silent{}, lost{};
  };
  // Where the absence of others is accepted, who has not heard this node is dropped too.
  void join(const std::vector<launch::address>& directory, std::int64_t deadline_ns,
            const tidings& meanwhile, absence of_others) override;
  // Until then, or until one of them all is lost, or nobody is silent. With who_hears those only
  // count as heard of who have heard this node.
  enum class wanted { all, who_hears };
  absent greet(const std::vector<launch::address>& directory, std::int64_t deadline_ns,
               const tidings& meanwhile, wanted who);
  void leave();
  // With p.lock held: says to the other end that this node does without the last one declined.
  void say_declined(const peer& p) const;
  // Says that nothing follows. With p.lock, or when nobody else is left.
  void say_end(peer& p);

  const settings settings_;
  const std::string nonce_;
  const socket_set sockets_;
  peer_table<peer> peers_;
  sleeper receiver_;
  attendance attendants_;
  sleeper sender_;
  os::descriptor sender_fetches_;  // the sender's bell and the sockets
  // Whoever polls counts; by that the sender thread sees whether somebody does.
  std::atomic<std::uint64_t> polls_{0};
  std::uint64_t polls_seen_ = 0;
  bool nobody_polls_ = false;
  std::atomic<bool> sender_called_{false};
  std::atomic<bool> room_made_{false};

  // Whoever polls holds it; if nobody does, the sender thread. Taken before any peer's lock.
  std::mutex inbox_;
  // With it held:
  renewals::hands* told_ = nullptr;
  arrivals arrivals_;
  bool more_arrives_ = false;  // there may be more in the sockets
  std::vector<peer*> turns_;   // have something to hand over; a ring, each peer at most once
  std::size_t first_turn_ = 0;
  std::size_t turn_count_ = 0;
  std::vector<peer*> heard_;             // since the last answer()
  std::atomic<bool> unfinished_{false};  // the last poll() has left something
  std::atomic<bool> losses_{false};      // somebody is lost, and that was not reported
  std::atomic<bool> meetings_{false};    // of a meeting, or a vain one
  // Of who may poll: what has come is being handed over, with inbox_ held.
  bool hands_over_ = false;
  class handing_over {
   public:
    explicit handing_over(udp_transport& t) noexcept : t_(t) { t_.hands_over_ = true; }
    ~handing_over() { t_.hands_over_ = false; }
    handing_over(const handing_over&) = delete;
    handing_over& operator=(const handing_over&) = delete;

   private:
    udp_transport& t_;
  };

  std::atomic<std::uint64_t> refused_{0};
  std::atomic<std::uint64_t> messages_in_{0};
  std::atomic<std::uint64_t> bytes_in_{0};
};

}  // namespace strata::net::udp
