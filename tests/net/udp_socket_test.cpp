// SPDX-License-Identifier: Apache-2.0
// However the kernel joins datagrams on their way, they come out as they were sent.
#include <gtest/gtest.h>
#include <poll.h>

#include <vector>

#include "base/prng.hpp"
#include "net/udp/socket_set.hpp"
#include "strata/error.hpp"

namespace strata::net::test {
namespace {

using bytes = std::vector<std::byte>;

class udp_socket : public testing::Test {
 protected:
  // What has arrived once `count` datagrams have.
  std::vector<bytes> receive(std::size_t count) {
    std::vector<bytes> all;
    while (all.size() < count) {
      pollfd polled{there_.get(), POLLIN, 0};
      if (::poll(&polled, 1, 10'000) != 1) break;
      const std::size_t n = arrivals_.receive(there_);
      for (std::size_t i = 0; i < n; ++i)
        all.emplace_back(arrivals_.at(i).begin(), arrivals_.at(i).end());
    }
    return all;
  }
  void expect_through(const std::vector<std::size_t>& sizes) {
    std::vector<bytes> sent;
    bytes together;
    for (const std::size_t size : sizes) {
      bytes& one = sent.emplace_back(size);
      for (std::byte& b : one) b = static_cast<std::byte>(random_.next());
      together.insert(together.end(), one.begin(), one.end());
    }
    ASSERT_EQ(here_.send(udp::target_of(there_.address()), together, sizes), sizes.size());
    EXPECT_EQ(receive(sizes.size()), sent);
  }

  udp::datagram_socket here_{"127.0.0.1"};
  udp::datagram_socket there_{"127.0.0.1"};
  udp::arrivals arrivals_;
  prng random_{5};
};

TEST_F(udp_socket, equal_ones_and_a_shorter_last_one_stay_apart) {
  for (const std::size_t size : {std::size_t{1}, std::size_t{40}, std::size_t{1472}}) {
    for (std::size_t count = 1; count <= udp::batch_max; ++count) {
      expect_through(std::vector<std::size_t>(count, size));
      std::vector<std::size_t> sizes(count, size);
      sizes.back() = (size + 1) / 2;
      expect_through(sizes);
    }
  }
  expect_through(std::vector<std::size_t>(9, udp::datagram_bytes_max));
}

TEST_F(udp_socket, those_of_any_sizes_come_in_order) {
  for (int round = 0; round < 300; ++round) {
    std::vector<std::size_t> sizes(1 + random_.below(udp::batch_max));
    // In a row often equal.
    std::size_t size = 1;
    for (std::size_t& s : sizes) {
      if (random_.below(3) == 0) size = 1 + random_.below(random_.below(4) == 0 ? 9000 : 600);
      s = size;
    }
    expect_through(sizes);
  }
}

TEST_F(udp_socket, one_that_is_too_long_hides_none_of_the_others) {
  const std::vector<std::size_t> sizes = {100, udp::datagram_bytes_max + 1, 100, 60'000, 100};
  const bytes together(100 + udp::datagram_bytes_max + 1 + 100 + 60'000 + 100);
  ASSERT_EQ(here_.send(udp::target_of(there_.address()), together, sizes), sizes.size());
  const std::vector<bytes> all = receive(sizes.size());
  ASSERT_EQ(all.size(), sizes.size());
  for (std::size_t i = 0; i < sizes.size(); ++i)
    EXPECT_EQ(all[i].size(), sizes[i] == 100 ? 100U : 0U);
}

TEST(udp_socket_set, sends_from_the_network_of_the_target) {
  const udp::socket_set here({"127.0.0.1", "127.0.0.2", "127.1.0.2"});
  const auto source_towards = [&](const char* host) {
    return here.towards(udp::target_of({host, 9})).address().host;
  };
  EXPECT_EQ(source_towards("127.0.0.1"), "127.0.0.1");
  EXPECT_EQ(source_towards("127.0.0.3"), "127.0.0.2");
  EXPECT_EQ(source_towards("127.1.7.7"), "127.1.0.2");
  EXPECT_EQ(source_towards("10.0.0.1"), "127.0.0.1");  // none is nearer than the first
}

TEST(udp_socket_set, sends_by_a_socket_of_the_kind_of_the_target) {
  try {
    const udp::socket_set here({"127.0.0.1", "::1"});
    EXPECT_EQ(here.towards(udp::target_of({"fd00::1", 9})).address().host, "::1");
    EXPECT_EQ(here.towards(udp::target_of({"192.0.2.1", 9})).address().host, "127.0.0.1");
  } catch (const user_error& e) {
    GTEST_SKIP() << e.what();
  }
}

}  // namespace
}  // namespace strata::net::test
