// SPDX-License-Identifier: Apache-2.0
// Messages over TCP sockets. It makes no threads: the node's sender thread loops over
// wait_for_room() and flush() of every peer, its receiver thread over poll() and
// wait_for_messages(); see transport.hpp. From the header, the length and the sequence are set
// here.
//
//   tcp::listener at(job.bind_address, 0, o.socket_buffer_bytes);
//   ... the launcher's directory: at.address() ...
//   auto sockets = tcp::connect_mesh(me, at, directory, deadline_ns, {});
//   tcp::tcp_transport t(me.node, std::move(sockets), o);
//
// Destroying it closes the connections; what is staged goes out if the sockets take it at once.
#pragma once
#include <atomic>
#include <memory>
#include <vector>

#include "net/tcp/incoming.hpp"
#include "net/tcp/options.hpp"
#include "net/tcp/outgoing.hpp"
#include "net/tcp/readiness.hpp"
#include "net/tcp/sender_wait.hpp"
#include "net/transport.hpp"
#include "os/descriptor.hpp"

namespace strata::net::tcp {

class tcp_transport final : public transport {
 public:
  // Connections by node, empty where there is none; all authenticated (tcp/mesh.hpp).
  tcp_transport(node_id self, std::vector<os::descriptor> sockets, const options& o);
  ~tcp_transport() override;

  // A connection to a node that had none; authenticated. By who may poll. Throws strata::error.
  void admit(node_id node, os::descriptor socket);
  // Another connection to a node to which there was one, which has ended or was dropped;
  // authenticated. By who may poll. False: a thread is just writing into the old one, and nothing
  // has happened. Throws strata::error.
  [[nodiscard]] bool restart(node_id node, os::descriptor socket);

  [[nodiscard]] capabilities about() const noexcept override {
    return {.reliable = true, .name = "tcp", .may_break = true};
  }
  [[nodiscard]] bool reaches(node_id peer) const noexcept override;
  [[nodiscard]] send_outcome try_send(node_id peer, header h, std::span<const std::byte> head,
                                      std::span<const std::byte> body) override;
  void cork(node_id peer, std::span<const std::byte> lasting) noexcept override;
  void uncork(node_id peer) noexcept override;
  [[nodiscard]] bool flush(node_id peer) override;
  std::size_t poll(receiver& r, std::size_t messages_max) override;
  void wait_for_messages(std::int64_t timeout_ns) override;
  void wake_receiver() noexcept override;
  void wait_for_room(std::int64_t timeout_ns) override;
  void wake_sender() noexcept override;
  stand_in_outcome stand_in(os::futex_word& own, std::uint32_t expected) noexcept override;
  void rouse_stand_in() noexcept override { readiness_.ring_stand_in(); }
  void dismiss_stand_in() noexcept override;
  void attended() noexcept override { readiness_.attended(); }
  // What is in the sockets wakes the receiver; not what has been read and is still to be handed
  // over.
  [[nodiscard]] bool unattended() noexcept override {
    readiness_.unattended();
    return unfinished_.load(std::memory_order_acquire);
  }
  void drop(node_id peer) noexcept override;
  void look_for_silence(receiver& r, std::int64_t now_ns, std::int64_t limit_ns) override;
  [[nodiscard]] traffic counted() const noexcept override;

 private:
  struct peer;

  [[nodiscard]] peer& at(node_id n) const;
  void add_turns();
  std::size_t serve(peer& p, receiver& r, std::size_t messages_max);
  void forget(peer& p, const std::string& why);
  static void give_back(peer& p);
  void lose(peer& p, receiver& r, const std::string& why);

  const node_id self_;
  const options options_;
  sender_wait sender_;
  std::vector<std::unique_ptr<peer>> owned_;
  // By node; empty where there is no connection. Release: the peer. Partner: all who send.
  std::vector<std::atomic<peer*>> peers_;
  readiness readiness_;

  // Whoever polls. Peers take turns: who has not had his yet comes before who has.
  std::vector<std::uint32_t> ready_;  // reported, not yet in turns_
  std::vector<peer*> turns_;          // a ring; each peer at most once
  std::size_t first_turn_ = 0;
  std::size_t turn_count_ = 0;
  std::atomic<bool> unfinished_{false};  // the last poll() has left something

  std::atomic<std::uint64_t> receiver_wakes_{0};
  std::atomic<bool> stand_in_dismissed_{false};
};

}  // namespace strata::net::tcp
