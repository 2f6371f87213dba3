// SPDX-License-Identifier: Apache-2.0
#include "net/byte_ring.hpp"

#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <random>
#include <thread>
#include <vector>

#include "../common/denied_calls.hpp"
#include "../common/slow_builds.hpp"

namespace {

using strata::net::byte_ring;

TEST(byte_ring, is_empty_at_first) {
  const byte_ring ring(1);
  EXPECT_GE(ring.capacity(), 1u);
  EXPECT_EQ(ring.used(), 0u);
  EXPECT_EQ(ring.room(), ring.capacity());
}

TEST(byte_ring, fills_up_and_starts_over) {
  byte_ring ring(4096);
  ring.append(ring.capacity());
  EXPECT_EQ(ring.room(), 0u);
  EXPECT_TRUE(ring.free().empty());
  const auto* const begin = ring.data().data();
  ring.consume(ring.capacity());
  ring.append(5);
  ring.consume(5);
  EXPECT_EQ(ring.free().data(), begin);
}

void expect_memory_given_back() {
  byte_ring ring(std::size_t{1} << 16);
  const std::vector<std::byte> ones(ring.capacity() / 2, std::byte{1});
  for (int round = 0; round < 2; ++round) {
    ring.append(ones.data(), ones.size());
    ring.give_back_memory();
    // What has no memory reads as zeros, by both of its mappings.
    EXPECT_EQ(std::ranges::count(ring.data(), std::byte{0}), std::ssize(ones));
    ring.consume(ones.size());
  }
}

TEST(byte_ring, gives_its_memory_back_and_goes_on) { expect_memory_given_back(); }

void expect_contiguous_across_the_end() {
  byte_ring ring(4096);
  ring.append(ring.capacity() - 10);
  ring.consume(ring.capacity() - 20);
  std::vector<char> text(100, 'x');
  ring.append(text.data(), text.size());
  ring.fill(ring.end() - 1, "y", 1);
  ring.consume(10);
  const auto data = ring.data();
  ASSERT_EQ(data.size(), text.size());
  text.back() = 'y';
  EXPECT_EQ(std::memcmp(data.data(), text.data(), text.size()), 0);
}

TEST(byte_ring, content_is_contiguous_across_the_end) { expect_contiguous_across_the_end(); }

// Filters of system calls may keep containers from them, and where nodes cannot share memory for
// that reason they talk over TCP.
TEST(byte_ring, does_without_files_of_memory) {
  for (const unsigned code : {ENOSYS, EPERM}) {
    bool denied = false;
    std::thread([&] {
      denied = strata::test::deny_calls({SYS_memfd_create}, code);
      if (!denied) return;
      expect_contiguous_across_the_end();
      expect_memory_given_back();
    }).join();
    if (!denied) GTEST_SKIP() << "no filters of system calls here";
  }
}

TEST(byte_ring, is_a_queue_of_bytes) {
  const auto seed = std::random_device{}();
  std::printf("seed %u\n", seed);
  std::mt19937 random(seed);
  byte_ring ring(4096);
  std::uint8_t in = 0;
  std::uint8_t out = 0;
  for (int i = 0; i < (strata::test::thread_sanitizer ? 5'000 : 20'000); ++i) {
    const auto room = ring.free().subspan(0, random() % (ring.room() + 1));
    for (std::byte& b : room) b = static_cast<std::byte>(in++);
    const std::uint64_t end = ring.end();
    ring.append(room.size());
    EXPECT_EQ(ring.end(), end + room.size());
    const auto data = ring.data().subspan(0, random() % (ring.used() + 1));
    for (const std::byte b : data) ASSERT_EQ(b, static_cast<std::byte>(out++));
    ring.consume(data.size());
    EXPECT_GE(ring.begin(), end + room.size() - ring.used());
  }
}

}  // namespace
