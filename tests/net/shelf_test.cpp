// SPDX-License-Identifier: Apache-2.0
// What a node offers to the others of its host: between transports of one process, which see each
// other's memory as those of several do.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "../common/sampled.hpp"
#include "net/shm/shm_transport.hpp"

namespace {

using namespace strata::net;
using strata::net::shm::shm_transport;

using buffer = std::array<std::byte, shelves::bytes_max>;
constexpr unsigned all_places = shelves::places_max;

class shelf : public testing::Test {
 protected:
  ~shelf() override { ::close(memory_); }

  std::unique_ptr<shm_transport> node(node_id self) const {
    strata::net::shm::settings s;
    s.memory = memory_;
    s.self = self;
    s.nodes = {0, 1, 2};
    s.ring_bytes = std::size_t{256} << 10;
    return std::make_unique<shm_transport>(s);
  }
  static unsigned offer(shelves& s, std::uint64_t value, unsigned limit = all_places) {
    return s.offer(std::as_bytes(std::span(&value, 1)), limit);
  }
  static std::uint64_t value_in(const taken_thing& t, const buffer& bytes) {
    EXPECT_EQ(t.how, take_outcome::taken);
    EXPECT_EQ(t.bytes, sizeof(std::uint64_t));
    std::uint64_t value = 0;
    std::memcpy(&value, bytes.data(), sizeof(value));
    return value;
  }

  const int memory_ = ::memfd_create("shelf_test", MFD_CLOEXEC);
};

TEST_F(shelf, gives_the_oldest_to_whoever_asks) {
  const auto owner = node(0);
  const auto peer = node(1);
  const auto other = node(2);
  buffer b;
  EXPECT_EQ(peer->take(0, b.data()).how, take_outcome::empty);
  for (std::uint64_t i = 0; i < 4; ++i) EXPECT_EQ(offer(*owner, i), i);
  EXPECT_EQ(owner->offered(), 4u);
  EXPECT_EQ(value_in(peer->take(0, b.data()), b), 0u);
  EXPECT_EQ(value_in(other->take(0, b.data()), b), 1u);
  const taken_thing own = owner->take_back(b.data());
  EXPECT_EQ(value_in(own, b), 2u);
  EXPECT_EQ(own.place, 2u);
  EXPECT_EQ(value_in(other->take(0, b.data()), b), 3u);
  EXPECT_EQ(owner->offered(), 0u);
  EXPECT_EQ(owner->take_back(b.data()).how, take_outcome::empty);
}

TEST_F(shelf, holds_anything_up_to_its_size) {
  const auto owner = node(0);
  const auto peer = node(1);
  std::array<std::byte, shelves::bytes_max + 1> bytes;
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i);
  for (std::size_t n = 0; n <= shelves::bytes_max; ++n) {
    ASSERT_NE(owner->offer(std::span(bytes).first(n), all_places), all_places);
    buffer b{};
    const taken_thing t = peer->take(0, b.data());
    ASSERT_EQ(t.bytes, n);
    ASSERT_EQ(std::memcmp(b.data(), bytes.data(), n), 0);
  }
  EXPECT_EQ(owner->offer(bytes, all_places), all_places);
}

TEST_F(shelf, once_full_asks_to_be_told_when_little_is_left) {
  const auto owner = node(0);
  const auto peer = node(1);
  buffer b;
  for (int round = 0; round < 3; ++round) {
    for (std::uint64_t i = 0; i < all_places; ++i) EXPECT_NE(offer(*owner, i), all_places);
    EXPECT_EQ(offer(*owner, 99), all_places);
    unsigned told = 0;
    for (std::uint64_t i = 0; i < all_places; ++i) {
      const taken_thing t = peer->take(0, b.data());
      EXPECT_EQ(value_in(t, b), i);
      told += t.tell_owner ? 1 : 0;
      // Before it is empty.
      if (i == all_places - 2) {
        EXPECT_EQ(told, 1u);
      }
    }
    EXPECT_EQ(told, 1u);
  }
  // Fewer than full: the owner still looks.
  EXPECT_NE(offer(*owner, 1), all_places);
  EXPECT_FALSE(peer->take(0, b.data()).tell_owner);
  // Unless it says that it does not.
  owner->set_attended(false);
  EXPECT_NE(offer(*owner, 1), all_places);
  EXPECT_TRUE(peer->take(0, b.data()).tell_owner);
  EXPECT_EQ(offer(*owner, 1, 1), 0u + (2 + 3 * all_places) % all_places);
  EXPECT_EQ(offer(*owner, 1, 1), all_places);
  EXPECT_TRUE(peer->take(0, b.data()).tell_owner);
}

TEST_F(shelf, of_a_lost_peer_is_empty) {
  const auto owner = node(0);
  const auto peer = node(1);
  EXPECT_EQ(offer(*owner, 1), 0u);
  peer->drop(0);
  buffer b;
  EXPECT_EQ(peer->take(0, b.data()).how, take_outcome::empty);
  EXPECT_EQ(peer->take(1, b.data()).how, take_outcome::empty);
  EXPECT_EQ(peer->take(7, b.data()).how, take_outcome::empty);
}

// Whatever a peer has done to the memory: it is called malformed, or is something of a size that
// fits.
TEST_F(shelf, that_holds_nonsense_is_not_believed) {
  const auto owner = node(0);
  const auto peer = node(1);
  constexpr std::size_t words = 4096 / sizeof(std::uint64_t);
  void* const mapped = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, memory_, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  auto* const memory = static_cast<std::uint64_t*>(mapped);
  unsigned malformed = 0;
  for (std::size_t at = 0; at < words; ++at) {
    for (const std::uint64_t nonsense :
         {std::uint64_t{1}, std::uint64_t{9}, std::uint64_t{0x7f}, std::uint64_t{0x101},
          std::uint64_t{0x90a}, ~std::uint64_t{0}, std::uint64_t{1} << 63}) {
      buffer b;
      EXPECT_NE(offer(*owner, 7), all_places);
      const std::uint64_t before = std::exchange(memory[at], nonsense);
      const taken_thing t = peer->take(0, b.data());
      malformed += t.how == take_outcome::malformed ? 1 : 0;
      if (t.how == take_outcome::taken) {
        EXPECT_LE(t.bytes, b.size());
      }
      memory[at] = before;
      while (owner->take_back(b.data()).how != take_outcome::empty) {
      }
    }
  }
  EXPECT_GT(malformed, 5u);
  ::munmap(mapped, 4096);
}

// Under ThreadSanitizer as well: what is copied while it may be overwritten are atomics.
TEST_F(shelf, loses_and_doubles_nothing_under_load) {
  constexpr std::uint64_t things = strata::test::sampled(200'000U, 50'000U);
  const auto owner = node(0);
  std::vector<std::atomic<int>> taken(things);
  std::atomic<std::uint64_t> left{things};
  const auto note = [&](const taken_thing& t, const buffer& b) {
    if (t.how == take_outcome::empty) return false;
    std::array<std::uint64_t, 31> words;
    std::memcpy(words.data(), b.data(), sizeof(words));
    EXPECT_EQ(t.bytes, sizeof(words));
    for (const std::uint64_t w : words) EXPECT_EQ(w, words[0]);
    EXPECT_EQ(taken.at(words[0]).fetch_add(1), 0);
    left.fetch_sub(1);
    return true;
  };
  std::vector<std::thread> takers;
  for (node_id i : {1, 2}) {
    takers.emplace_back([&, i] {
      const auto me = node(i);
      buffer b;
      while (left.load() != 0) {
        if (!note(me->take(0, b.data()), b)) std::this_thread::yield();
      }
    });
  }
  // Now and then it takes one back; and where the takers wait for cores that others have.
  constexpr unsigned refused_max = 16;
  unsigned refused = 0;
  for (std::uint64_t i = 0; i < things;) {
    std::array<std::uint64_t, 31> words;
    words.fill(i);
    if (owner->offer(std::as_bytes(std::span(words)), all_places) != all_places) {
      ++i;
      refused = 0;
    } else if (i % 3 == 0 || ++refused > refused_max) {
      buffer b;
      note(owner->take_back(b.data()), b);
    }
  }
  for (std::thread& t : takers) t.join();
  EXPECT_EQ(owner->offered(), 0u);
}

}  // namespace
