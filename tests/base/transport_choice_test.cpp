// SPDX-License-Identifier: Apache-2.0
// What a user can ask for, and what it means within a host and between hosts.
#include "base/transport_choice.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <set>

namespace strata {
namespace {

TEST(transport_choice, a_combination_is_memory_within_a_host_and_the_other_between_hosts) {
  constexpr struct {
    std::string_view name;
    bool memory;
    network_kind network;
  } meanings[] = {{"auto", true, network_kind::tcp},    {"shm", true, network_kind::none},
                  {"tcp", false, network_kind::tcp},    {"ucx", false, network_kind::ucx},
                  {"udp", false, network_kind::udp},    {"shm+tcp", true, network_kind::tcp},
                  {"shm+ucx", true, network_kind::ucx}, {"shm+udp", true, network_kind::udp}};
  for (const auto& m : meanings) {
    const auto choice = transport_named(m.name);
    ASSERT_TRUE(choice) << m.name;
    EXPECT_EQ(uses_memory(*choice), m.memory) << m.name;
    EXPECT_EQ(network_of(*choice), m.network) << m.name;
  }
  EXPECT_EQ(transport_named("shm+tcp"), transport_named("auto"));
}

TEST(transport_choice, nothing_else_has_a_name) {
  for (const char* const name :
       {"", "+", "shm+", "+udp", "shm+foo", "ucx+udp", "udp+shm", "shm+shm", "shm+udp+tcp", "SHM"})
    EXPECT_FALSE(transport_named(name)) << name;
}

TEST(transport_choice, every_name_is_listed_once_and_every_choice_has_one) {
  EXPECT_EQ(std::set(transport_names.begin(), transport_names.end()).size(),
            transport_names.size());
  std::set<transport_choice> named;
  for (const std::string_view name : transport_names) named.insert(transport_named(name).value());
  for (std::size_t number = 0; number < 256; ++number) {
    const auto n = static_cast<std::uint8_t>(number);
    EXPECT_EQ(is_transport_choice(n), named.count(static_cast<transport_choice>(n)) == 1) << number;
  }
}

}  // namespace
}  // namespace strata
