// SPDX-License-Identifier: Apache-2.0
// What tests of UCX share: nodes that talk over it within this process, and somebody who is none of
// them.
#pragma once
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "net/ucx/pass.hpp"
#include "net/ucx/send_buffers.hpp"
#include "net/ucx/ucx_transport.hpp"
#include "net/ucx/worker.hpp"
#include "transport_support.hpp"

namespace strata::net::test {

inline constexpr std::int64_t start_limit_ns = 60'000'000'000;

// UCX reads these when a transport is made.
class over {
 public:
  explicit over(const char* tls) {
    ::setenv("UCX_LOG_LEVEL", "fatal", 1);  // lost peers are what is tested
    // How soon UCX notices that a peer has let go of its connection; 20 s unless it is told so.
    ::setenv("UCX_KEEPALIVE_INTERVAL", "1s", 1);
#if defined(STRATA_TSAN)
    // UCX patches madvise(), which a thread calls when ThreadSanitizer has taken leave of it.
    ::setenv("UCX_MEM_MMAP_HOOK_MODE", "none", 1);
#endif
    ::setenv("UCX_TLS", tls, 1);
  }
};

inline ucx::settings settings_of(node_id self, node_id nodes) {
  ucx::settings s;
  s.self = self;
  s.nodes = nodes;
  s.key.fill(7);
  s.job = 42;
  s.devices = "lo";
  return s;
}

using ucx_nodes = std::vector<std::unique_ptr<ucx::ucx_transport>>;

inline ucx_nodes open_all(node_id nodes, const std::function<void(ucx::settings&)>& change) {
  ucx_nodes all;
  std::vector<launch::address> directory;
  for (node_id n = 0; n < nodes; ++n) {
    ucx::settings s = settings_of(n, nodes);
    if (change) change(s);
    all.push_back(std::make_unique<ucx::ucx_transport>(s));
    directory.push_back(all.back()->address());
  }
  const std::int64_t deadline_ns = os::now_ns() + start_limit_ns;
  std::vector<std::thread> threads;
  for (const auto& t : all) {
    threads.emplace_back([&t, &directory, deadline_ns] { t->connect(directory, deadline_ns); });
  }
  for (std::thread& t : threads) t.join();
  return all;
}

inline ucx_nodes open_all(node_id nodes, std::size_t in_flight = 0) {
  return open_all(nodes, [in_flight](ucx::settings& s) {
    if (in_flight != 0) s.in_flight_bytes_max = in_flight;
  });
}

// Somebody who reaches the ports, knows all addresses and numbers, and sends active messages.
class stranger {
 public:
  explicit stranger(const std::string& address) : worker_("lo") {
    ucp_ep_params_t how{};
    how.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    how.address = reinterpret_cast<const ucp_address_t*>(address.data());
    EXPECT_EQ(ucp_.ucp_ep_create(worker_.handle(), &how, &endpoint_), UCS_OK);
  }
  // What begins a message.
  void send(unsigned id, const void* head, std::size_t head_bytes, std::size_t bytes,
            std::uint32_t flags = UCP_AM_SEND_FLAG_EAGER) {
    std::vector<std::byte> all(head_bytes + bytes);
    if (head_bytes != 0) std::memcpy(all.data(), head, head_bytes);
    send_active(id, nullptr, 0, all, flags);
  }
  // The same as UCX knows it: with a header of its own.
  void send_active(unsigned id, const void* head, std::size_t head_bytes,
                   std::span<const std::byte> bytes, std::uint32_t flags) {
    ucp_request_param_t how{};
    how.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    how.flags = flags;
    const ucs_status_ptr_t request =
        ucp_.ucp_am_send_nbx(endpoint_, id, head, head_bytes, bytes.data(), bytes.size(), &how);
    ASSERT_FALSE(UCS_PTR_IS_ERR(request));
    const auto go_on = [&] {
      (void)worker_.progress();
      meanwhile();
    };
    while (request != nullptr && ucp_.ucp_request_check_status(request) == UCS_INPROGRESS) go_on();
    if (request != nullptr) ucp_.ucp_request_free(request);
    for (int i = 0; i < 100; ++i) go_on();
  }
  std::function<void()> meanwhile = [] {};
  [[nodiscard]] ucp_ep_h endpoint() const noexcept { return endpoint_; }

 private:
  ucx::worker worker_;
  const ucx::ucp_library& ucp_ = ucx::ucp_library::get();
  ucp_ep_h endpoint_ = nullptr;
};

inline ucx::wire_head head_of(node_id source, node_id destination, std::uint32_t sequence,
                              std::size_t length, std::uint64_t pass) {
  header h = header_of(source, destination);
  h.sequence = sequence;
  h.length = static_cast<std::uint32_t>(length);
  return {h, pass};
}

}  // namespace strata::net::test
