// SPDX-License-Identifier: Apache-2.0
// Messages between nodes that live in one process, each with threads of its own: for tests of what
// stands above transports, with no network and no set-up. A node whose transport is destroyed has
// ended, and the others hear of it.
#pragma once
#include <atomic>
#include <cstddef>
#include <deque>
#include <memory>
#include <vector>

#include "net/inproc/inbox.hpp"
#include "net/transport.hpp"

namespace strata::net::inproc {

// Where the nodes of one job meet. Lives as long as any of their transports.
class meeting {
 public:
  static constexpr std::size_t usual_credits_bytes = std::size_t{256} << 10;

  // Of nodes with numbers below `nodes`; from one to another so many bytes may be under way.
  explicit meeting(node_id nodes, std::size_t credits_bytes = usual_credits_bytes);

  [[nodiscard]] node_id nodes() const noexcept { return static_cast<node_id>(all_.size()); }

 private:
  friend class inproc_transport;
  struct place {
    place(node_id nodes, std::size_t credits_bytes) : in(nodes, credits_bytes) {}
    inbox in;
    // Release: its inbox is open. Partner: reaches().
    std::atomic<bool> is_taken{false};
  };
  std::deque<place> all_;  // by node
};

class inproc_transport final : public transport {
 public:
  // That number is nobody's yet, and has never been.
  inproc_transport(std::shared_ptr<meeting> where, node_id self);
  ~inproc_transport() override;
  inproc_transport(const inproc_transport&) = delete;
  inproc_transport& operator=(const inproc_transport&) = delete;

  [[nodiscard]] capabilities about() const noexcept override { return {true, "inproc", true}; }
  // Since it is there, also when it has ended.
  [[nodiscard]] bool reaches(node_id peer) const noexcept override;
  [[nodiscard]] send_outcome try_send(node_id peer, header h, std::span<const std::byte> head,
                                      std::span<const std::byte> body) override;
  [[nodiscard]] bool flush(node_id) override { return true; }
  std::size_t poll(receiver& r, std::size_t messages_max) override;
  void wait_for_messages(std::int64_t timeout_ns) override;
  void wake_receiver() noexcept override;
  stand_in_outcome stand_in(os::futex_word& own, std::uint32_t expected) noexcept override;
  void rouse_stand_in() noexcept override;
  void dismiss_stand_in() noexcept override;
  void wait_for_room(std::int64_t timeout_ns) override;
  void wake_sender() noexcept override;
  void attended() noexcept override;
  [[nodiscard]] bool unattended() noexcept override;
  void drop(node_id peer) noexcept override;
  [[nodiscard]] traffic counted() const noexcept override;

 private:
  [[nodiscard]] inbox& in_of(node_id n) const { return where_->all_[n].in; }
  [[nodiscard]] bool is_dropped(node_id n) const noexcept {
    return dropped_[n].load(std::memory_order_relaxed);
  }
  void tell(const std::vector<node_id>& refused);

  const std::shared_ptr<meeting> where_;
  const node_id self_;
  inbox& mine_;
  std::vector<std::atomic<bool>> dropped_;  // by node
  std::vector<inbox::item> taken_;          // of poll()
  std::atomic<std::uint64_t> messages_out_{0}, bytes_out_{0}, messages_in_{0}, bytes_in_{0};
};

}  // namespace strata::net::inproc
