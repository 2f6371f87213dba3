// SPDX-License-Identifier: Apache-2.0
// Messages between processes of one host, through memory that they share. No set-up: the launcher
// passes a memfd, and each node maps it.
//
// A sleeping receiver, or its stand-in, has announced itself in shared memory, and is woken through
// a futex; one that is awake costs its senders no system call.
#pragma once
#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "net/shm/ring.hpp"
#include "net/transport.hpp"

namespace strata::net::shm {

struct settings {
  int memory = -1;               // memfd, the same for all nodes of the host; stays the caller's
  node_id self = 0;              // number of this node in its job
  std::vector<node_id> nodes;    // of this host, self included, in the same order everywhere
  std::vector<node_id> later{};  // those of them that are not there yet: see admit()
  std::size_t ring_bytes = 0;    // per direction and pair; 0: chosen by the number of nodes
};

// Of each of the rings between so many nodes of one host, if nothing else is said.
[[nodiscard]] std::size_t ring_bytes_for(std::size_t nodes) noexcept;

class shm_transport final : public transport, public shelves, public joint_copies {
 public:
  // Throws strata::error when the memory cannot be had.
  explicit shm_transport(const settings& s);
  ~shm_transport() override;

  // A node that was to come later is there, or about to be. By who may poll.
  void admit(node_id node);

  [[nodiscard]] capabilities about() const noexcept override { return {true, "shm", true}; }
  [[nodiscard]] bool reaches(node_id peer) const noexcept override;
  [[nodiscard]] send_outcome try_send(node_id peer, header h, std::span<const std::byte> head,
                                      std::span<const std::byte> body) override;
  [[nodiscard]] bool flush(node_id) override { return true; }
  std::size_t poll(receiver& r, std::size_t messages_max) override;
  void wait_for_messages(std::int64_t timeout_ns) override;
  void wake_receiver() noexcept override;
  stand_in_outcome stand_in(os::futex_word& own, std::uint32_t expected) noexcept override;
  void dismiss_stand_in() noexcept override;
  void wait_for_room(std::int64_t timeout_ns) override;
  void wake_sender() noexcept override;
  void attended() noexcept override;
  [[nodiscard]] bool unattended() noexcept override;
  void drop(node_id peer) noexcept override;
  void has_left() noexcept override { has_left_ = true; }
  [[nodiscard]] shelves* shelves_of_host() noexcept override { return this; }
  [[nodiscard]] joint_copies* copies_of_host() noexcept override { return this; }
  [[nodiscard]] traffic counted() const noexcept override;

  // ---- shelves ----
  unsigned offer(std::span<const std::byte> bytes, unsigned limit) noexcept override;
  taken_thing take_back(std::byte* into) noexcept override;
  void set_attended(bool attended) noexcept override;
  [[nodiscard]] unsigned offered() const noexcept override;
  taken_thing take(node_id peer, std::byte* into) noexcept override;

  // ---- joint_copies ----
  [[nodiscard]] copy* copies_of(node_id node) noexcept override;
  [[nodiscard]] bool is_attended(node_id peer) const noexcept override;

 private:
  struct shared_node;
  struct peer;

  [[nodiscard]] peer* find(node_id node) const noexcept;
  [[nodiscard]] std::span<const std::unique_ptr<peer>> peers_now() const noexcept {
    return std::span(peers_).first(peer_count_.load(std::memory_order_acquire));
  }
  [[nodiscard]] bool anything_arrived() noexcept;
  void remind_stand_in() noexcept;
  void lose(peer& p, receiver& r, const char* why);

  // Before the rings, in a memory of n places.
  [[nodiscard]] static std::size_t head_bytes(std::size_t n) noexcept;
  void add_peer(node_id node);
  [[nodiscard]] std::size_t place_of(node_id node) const noexcept;
  [[nodiscard]] std::byte* ring_data(std::size_t from, std::size_t to) const noexcept;
  void give_back_rings() noexcept;

  const node_id self_;
  std::vector<node_id> places_;  // of the memory, by node
  std::size_t ring_bytes_ = 0;
  std::size_t me_ = 0;  // our place
  std::size_t bytes_ = 0;
  std::byte* memory_ = nullptr;
  shared_node* mine_ = nullptr;
  // As long as they can become. Release: the peer. Partner: peers_now(), find().
  std::vector<std::unique_ptr<peer>> peers_;
  std::atomic<std::size_t> peer_count_{0};
  std::unique_ptr<std::atomic<peer*>[]> by_node_;
  std::size_t numbers_ = 0;  // of nodes that by_node_ has
  // Set by wake_receiver() and wake_sender(), so that a call just before the sleep is not missed.
  std::atomic<bool> receiver_called_{false}, sender_called_{false};
  std::atomic<bool> stand_in_dismissed_{false};
  bool has_left_ = false;
  std::size_t next_ = 0;  // where the next poll begins, so that all get their turn
  std::atomic<std::uint64_t> messages_in_{0}, bytes_in_{0}, wakes_{0};
};

}  // namespace strata::net::shm
