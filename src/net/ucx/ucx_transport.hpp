// SPDX-License-Identifier: Apache-2.0
// Messages over UCX: active messages, sent eagerly, over whatever network UCX finds, small ones of
// a burst together in one; and transfers, which are active messages by rendezvous: UCX has its
// devices read or write the other node's memory where they can. It makes no threads of its own; see
// transport.hpp for whose they are. UCX makes one, for connections.
//
//   ucx::ucx_transport t(s);
//   ... the launcher's directory: t.address() ...
//   t.connect(directory, deadline_ns);
//
// Nothing moves in UCX unless somebody calls it: whoever polls does, and who sleeps in
// wait_for_messages() is woken for it. Where neither happens, the sender thread in wait_for_room()
// does it for as long as something is on its way; what arrives meanwhile waits for the receiver.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "net/addressed.hpp"
#include "net/burst.hpp"

namespace strata::net::ucx {

// Whether there are transfers, and not only messages.
enum class rendezvous {
  automatic,  // with peers whose memory UCX's devices read or write
  always,     // with all: over sockets too, where UCX copies
  never
};

struct settings : job_part {
  std::string devices{};  // as in UCX_NET_DEVICES, which goes before; empty: what UCX chooses
  // Some peers may be behind something that lets nothing through: connect_where_possible() and
  // admit() do not wait for the system to give up then.
  bool some_unreachable = false;
  // What may be on its way in UCX to one peer; more has to wait.
  std::size_t in_flight_bytes_max = std::size_t{1} << 20;
  rendezvous transfers = rendezvous::automatic;
  // Small messages that follow each other within burst_gap_ns leave together, once 60,000 bytes are
  // there or the first of them has waited for flush_deadline_ns.
  std::int64_t burst_gap_ns = burst::usual_gap_ns;
  std::int64_t flush_deadline_ns = burst::usual_deadline_ns;
};

class ucx_transport final : public addressed_transport {
 public:
  // Throws strata::error, also when UCX is not installed.
  explicit ucx_transport(const settings& s);
  // What is staged goes out if the network takes it at once; peers hear that this node leaves.
  ~ucx_transport() override;

  [[nodiscard]] launch::address address() const override;
  void admit(node_id node, const launch::address& where) override;

  [[nodiscard]] capabilities about() const noexcept override {
    return {.reliable = true, .name = "ucx", .may_break = true};
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
  void attended() noexcept override;
  [[nodiscard]] bool unattended() noexcept override;
  void drop(node_id peer) noexcept override;
  [[nodiscard]] net::transfers* transfers_of_peers() noexcept override;
  [[nodiscard]] traffic counted() const noexcept override;

  // Blocks of memory that UCX has registered for the program and not let go of yet, for tests.
  [[nodiscard]] std::size_t blocks_mapped() const noexcept;

 private:
  void join(const std::vector<launch::address>& directory, std::int64_t deadline_ns,
            const tidings& meanwhile, absence of_others) override;

  struct state;
  const std::unique_ptr<state> state_;
};

}  // namespace strata::net::ucx
