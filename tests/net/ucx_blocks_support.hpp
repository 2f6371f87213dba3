// SPDX-License-Identifier: Apache-2.0
// Three nodes within this process whose transfers all go over UCX.
#pragma once
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "../common/known_bytes.hpp"
#include "ucx_support.hpp"

namespace strata::net::test {

inline constexpr std::size_t block_bytes_most = std::size_t{64} << 20;

inline std::vector<std::byte> content_of(std::uint64_t number, std::size_t bytes) {
  return strata::test::known_bytes<block_bytes_most>(number * 37, bytes);
}

// What a node hears.
struct ends final : receiver {
  void on_message(const header&, std::span<const std::byte>) override { ++messages; }
  void on_lost(node_id peer, const std::string& why) override { lost[peer] = why; }
  void on_arrived(node_id, std::uint64_t number, bool whole) override {
    EXPECT_TRUE(arrived.emplace(number, whole).second) << number << " ended twice";
  }
  void on_given(node_id, std::uint64_t number, bool whole) override {
    EXPECT_TRUE(given.emplace(number, whole).second) << number << " ended twice";
  }
  std::size_t messages = 0;
  std::map<std::uint64_t, bool> arrived, given;
  std::map<node_id, std::string> lost;
};

class ucx_blocks : public testing::TestWithParam<const char*> {
 protected:
  static ucx_nodes open(node_id nodes) {
    return open_all(nodes, [](ucx::settings& s) { s.transfers = ucx::rendezvous::always; });
  }
  static transfers& of(ucx::ucx_transport& t) { return *t.transfers_of_peers(); }
  void poll_until(const std::function<bool()>& done) {
    const std::int64_t end_ns = os::now_ns() + too_long_ns;
    while (!done()) {
      for (std::size_t n = 0; n < all_.size(); ++n) {
        if (all_[n] != nullptr) (void)all_[n]->poll(heard_[n], 64);
      }
      ASSERT_LT(os::now_ns(), end_ns) << "what is awaited never comes";
    }
  }

  const over network_{GetParam()};
  ucx_nodes all_ = open(3);
  std::vector<ends> heard_{3};
};

}  // namespace strata::net::test
