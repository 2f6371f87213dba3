// SPDX-License-Identifier: Apache-2.0
// Messages over UCX: active messages, sent eagerly, over whatever network UCX finds. It makes no
// threads of its own; see transport.hpp for whose they are. UCX makes one, for connections.
//
//   ucx::ucx_transport t(s);
//   ... the launcher's directory: t.address() ...
//   t.connect(addresses, deadline_ns);
//
// Nothing moves in UCX unless somebody calls it: whoever polls does, and who sleeps in
// wait_for_messages() is woken for it. Where neither happens, the sender thread in wait_for_room()
// does it for as long as something is on its way; what arrives meanwhile waits for the receiver.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "net/transport.hpp"
#include "net/ucx/pass.hpp"

namespace strata::net::ucx {

struct settings {
  node_id self = 0;
  node_id nodes = 1;
  job_key key{};  // of the job; see pass.hpp
  std::uint64_t job = 0;
  std::string devices{};  // as in UCX_NET_DEVICES, which goes before; empty: what UCX chooses
  // What may be on its way in UCX to one peer; more has to wait.
  std::size_t in_flight_bytes_max = std::size_t{1} << 20;
};

class ucx_transport final : public transport {
 public:
  // Throws strata::error, also when UCX is not installed.
  explicit ucx_transport(const settings& s);
  // What is staged goes out if the network takes it at once; peers hear that this node leaves.
  ~ucx_transport() override;

  // What the others need to reach this node; opaque bytes.
  [[nodiscard]] const std::string& address() const noexcept;
  // Index: node. Blocks until every node has been heard of, and has proved the key. Throws
  // strata::error when one has not by then (os::now_ns()). Before every other call.
  void connect(const std::vector<std::string>& addresses, std::int64_t deadline_ns);

  [[nodiscard]] capabilities about() const noexcept override { return {true, "ucx"}; }
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
  void unattended() noexcept override;
  void drop(node_id peer) noexcept override;
  [[nodiscard]] traffic counted() const noexcept override;

 private:
  struct state;
  const std::unique_ptr<state> state_;
};

}  // namespace strata::net::ucx
