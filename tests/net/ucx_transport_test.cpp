// SPDX-License-Identifier: Apache-2.0
// The promises of every transport, kept over UCX; and what is said of UCX alone: who is believed,
// and in which order.
#include "net/ucx/ucx_transport.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

#include "addressed_suite.hpp"
#include "net/ucx/in_order.hpp"
#include "net/ucx/parcels.hpp"
#include "net/ucx/pass.hpp"
#include "net/ucx/worker.hpp"
#include "strata/detail/cpu.hpp"
#include "strata/error.hpp"
#include "transport_suite.hpp"

namespace strata::net::test {
namespace {

using ucx::ucx_transport;
using transports = std::vector<std::unique_ptr<transport>>;

constexpr std::int64_t start_limit_ns = 60'000'000'000;

// UCX reads these when a transport is made.
class over {
 public:
  explicit over(const char* tls) {
    ::setenv("UCX_LOG_LEVEL", "fatal", 1);  // lost peers are what is tested
#if defined(STRATA_TSAN)
    // UCX patches madvise(), which a thread calls when ThreadSanitizer has taken leave of it.
    ::setenv("UCX_MEM_MMAP_HOOK_MODE", "none", 1);
#endif
    ::setenv("UCX_TLS", tls, 1);
  }
};

ucx::settings settings_of(node_id self, node_id nodes) {
  ucx::settings s;
  s.self = self;
  s.nodes = nodes;
  s.key.fill(7);
  s.job = 42;
  s.devices = "lo";
  return s;
}

std::vector<std::unique_ptr<ucx_transport>> open_all(node_id nodes, std::size_t in_flight = 0) {
  std::vector<std::unique_ptr<ucx_transport>> all;
  std::vector<launch::address> directory;
  for (node_id n = 0; n < nodes; ++n) {
    ucx::settings s = settings_of(n, nodes);
    if (in_flight != 0) s.in_flight_bytes_max = in_flight;
    all.push_back(std::make_unique<ucx_transport>(s));
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

transport_maker maker(const char* name, const char* tls) {
  return {name, [tls](node_id nodes, bool small_buffers) {
            const over network(tls);
            transports all;
            for (auto& t : open_all(nodes, small_buffers ? 16384 : 0)) all.push_back(std::move(t));
            return all;
          }};
}

INSTANTIATE_TEST_SUITE_P(ucx, transport_suite,
                         testing::Values(maker("sockets", "tcp"), maker("any", "all")), name_of);

INSTANTIATE_TEST_SUITE_P(ucx, addressed_suite,
                         testing::Values(addressed_maker{
                             "sockets", [](node_id self, node_id nodes) {
                               const over network("tcp");
                               return std::make_unique<ucx_transport>(settings_of(self, nodes));
                             }}));

// ---- who is believed ----

// Somebody who reaches the ports, knows all addresses and numbers, and sends active messages.
class stranger {
 public:
  explicit stranger(const std::string& address) : worker_("lo") {
    ucp_ep_params_t how{};
    how.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    how.address = reinterpret_cast<const ucp_address_t*>(address.data());
    EXPECT_EQ(ucp_.ucp_ep_create(worker_.handle(), &how, &endpoint_), UCS_OK);
  }
  void send(unsigned id, const void* head, std::size_t head_bytes, std::size_t bytes,
            std::uint32_t flags = UCP_AM_SEND_FLAG_EAGER) {
    std::vector<std::byte> all(head_bytes + bytes);
    if (head_bytes != 0) std::memcpy(all.data(), head, head_bytes);
    ucp_request_param_t how{};
    how.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    how.flags = flags;
    const ucs_status_ptr_t request =
        ucp_.ucp_am_send_nbx(endpoint_, id, nullptr, 0, all.data(), all.size(), &how);
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

 private:
  ucx::worker worker_;
  const ucx::ucp_library& ucp_ = ucx::ucp_library::get();
  ucp_ep_h endpoint_ = nullptr;
};

ucx::wire_head head_of(node_id source, node_id destination, std::uint32_t sequence,
                       std::size_t length, std::uint64_t pass) {
  header h = header_of(source, destination);
  h.sequence = sequence;
  h.length = static_cast<std::uint32_t>(length);
  return {h, pass};
}

TEST(ucx_transport, strangers_are_not_heard) {
  const over network("tcp");
  auto all = open_all(2);
  checking_receiver r(0, small_size);
  stranger s(all[0]->address().worker);
  s.meanwhile = [&] { (void)all[0]->poll(r, 64); };
  for (const unsigned id : {0U, 1U, 2U, 3U, 4U}) {
    const auto guess = head_of(1, 0, 1, 64, 0x0123'4567'89AB'CDEF);
    s.send(id, &guess, sizeof guess, 64);
    s.send(id, &guess, sizeof guess, 1'000'000);
    s.send(id, &guess, 7, 0);
    s.send(id, nullptr, 0, 0);
    const auto nobody = head_of(9999, 0, 1, 64, 0);
    s.send(id, &nobody, sizeof nobody, 64);
    s.send(id, &guess, sizeof guess, 1'000'000, UCP_AM_SEND_FLAG_RNDV);
  }
  send_patiently(*all[1], 1, 0, content(1, 0, 64));
  r.receive(*all[0], 1);
  EXPECT_EQ(r.total, 1u);
  EXPECT_TRUE(r.lost.empty());
}

TEST(ucx_transport, a_node_that_sends_nonsense_is_lost) {
  const over network("tcp");
  const std::uint64_t pass = ucx::pass_of(settings_of(0, 2).key, 42, 1, 0);
  const std::vector<std::pair<ucx::wire_head, std::size_t>> nonsense = {
      {head_of(1, 0, 1, 65, pass), 64},                                         // another length
      {head_of(1, 1, 1, 64, pass), 64},                                         // for somebody else
      {head_of(1, 0, 0, 64, pass), 64},                                         // once more
      {head_of(1, 0, 1U << 31, 64, pass), 64},                                  // from far ahead
      {head_of(1, 0, 1, payload_bytes_max + 1, pass), payload_bytes_max + 1}};  // too much
  for (const auto& [head, bytes] : nonsense) {
    auto all = open_all(2);
    checking_receiver r(0, small_size);
    stranger s(all[0]->address().worker);
    s.meanwhile = [&] { (void)all[0]->poll(r, 64); };
    s.send(0, &head, sizeof head, bytes);
    r.receive_until(*all[0], [&] { return !r.lost.empty(); });
    EXPECT_EQ(r.total, 0u);
    EXPECT_EQ(r.lost[1][0].rfind("sent a m", 0), 0u) << r.lost[1][0];
  }
}

TEST(ucx_transport, a_node_with_another_key_does_not_join) {
  const over network("tcp");
  std::vector<std::unique_ptr<ucx_transport>> all;
  std::vector<launch::address> directory;
  for (node_id n = 0; n < 2; ++n) {
    ucx::settings s = settings_of(n, 2);
    s.key[0] = static_cast<std::uint8_t>(n);
    all.push_back(std::make_unique<ucx_transport>(s));
    directory.push_back(all.back()->address());
  }
  std::thread other(
      [&] { EXPECT_THROW(all[1]->connect(directory, os::now_ns() + 300'000'000), strata::error); });
  try {
    all[0]->connect(directory, os::now_ns() + 300'000'000);
    ADD_FAILURE();
  } catch (const strata::error& e) {
    EXPECT_NE(std::string(e.what()).find("node 1"), std::string::npos) << e.what();
  }
  other.join();
}

TEST(ucx_transport, passes_differ_by_all_that_they_vouch_for) {
  launch::job_key key{};
  launch::job_key other{};
  other[31] = 1;
  const std::vector<std::uint64_t> all = {ucx::pass_of(key, 1, 0, 1), ucx::pass_of(key, 1, 1, 0),
                                          ucx::pass_of(key, 2, 0, 1), ucx::pass_of(key, 1, 0, 2),
                                          ucx::pass_of(other, 1, 0, 1)};
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) EXPECT_NE(all[i], all[j]);
  }
  EXPECT_EQ(all[0], ucx::pass_of(key, 1, 0, 1));
}

// ---- the order ----

TEST(ucx_order, early_ones_wait_for_those_before_them) {
  ucx::in_order order;
  const auto keep = [&](std::uint32_t sequence) {
    header h{};
    h.sequence = sequence;
    return order.keep(0, h, std::as_bytes(std::span(&sequence, 1)));
  };
  EXPECT_TRUE(order.is_next(0));
  EXPECT_TRUE(keep(2));
  EXPECT_TRUE(keep(1));
  EXPECT_FALSE(keep(2)) << "twice";
  EXPECT_FALSE(keep(0)) << "it is next, not early";
  EXPECT_FALSE(order.take().has_value());
  order.advance();
  for (const std::uint32_t sequence : {1U, 2U}) {
    auto e = order.take();
    ASSERT_TRUE(e.has_value());
    EXPECT_EQ(e->h.sequence, sequence);
    EXPECT_EQ(e->payload.size(), sizeof sequence);
    order.advance();
  }
  EXPECT_FALSE(order.take().has_value());
  EXPECT_FALSE(keep(1)) << "it came before";
}

TEST(ucx_order, no_more_waits_than_an_honest_peer_sends) {
  ucx::in_order order;
  const std::vector<std::byte> payload(payload_bytes_max);
  std::size_t kept = 0;
  for (header h{};; ++kept) {
    ASSERT_LT(kept, 100'000u);
    ++h.sequence;
    if (!order.keep(0, h, payload)) break;
  }
  EXPECT_GE(kept * payload.size(), ucx::in_order::early_bytes_max / 2);
  EXPECT_LE(kept * payload.size(), ucx::in_order::early_bytes_max);
}

// ---- how it ends ----

TEST(ucx_transport, what_is_under_way_arrives_before_the_end) {
  const over network("tcp");
  auto all = open_all(2);
  checking_receiver r(1, small_size);
  expect_all_before_the_end(all[0], *all[1], r);
  EXPECT_EQ(r.lost[0][0], "has left");
}

TEST(ucx_transport, devices_have_names_and_others_are_refused) {
  const over network("tcp");
  ucx::settings s = settings_of(0, 1);
  s.devices = "no-such-device";
  EXPECT_THROW(ucx_transport{s}, strata::error);
}

}  // namespace
}  // namespace strata::net::test
