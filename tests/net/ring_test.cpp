// SPDX-License-Identifier: Apache-2.0
// Records of a ring, and the two ways in which their bodies are copied into it.
#include "net/shm/ring.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "../common/slow_builds.hpp"
#include "base/quicker_way.hpp"
#include "net/shm/reading_pace.hpp"
#include "net/shm/shm_transport.hpp"
#include "net/shm/streaming_copy.hpp"
#include "os/pages.hpp"

namespace strata::net::shm {
namespace {

constexpr std::uint64_t moment = 100;

// What follows at such distances, with so many sent the other way before each. Returns whether the
// writer is left alone afterwards.
bool leaves_alone_after(reading_pace& p, std::uint64_t& now, unsigned count, std::uint64_t gap,
                        std::uint64_t& sent, unsigned answers = 0, std::size_t bytes = 64) {
  for (unsigned i = 0; i < count; ++i) {
    sent += answers;
    now += gap;
    p.found(bytes, sent, [&] { return now; });
  }
  return p.leaves_alone(sent);
}

TEST(reading_pace, leaves_the_writer_alone_while_messages_follow_each_other) {
  reading_pace p(moment);
  std::uint64_t now = 1'000'000, sent = 5;
  EXPECT_FALSE(p.leaves_alone(sent));
  EXPECT_FALSE(leaves_alone_after(p, now, reading_pace::train + 1, 10, sent)) << "the first two";
  EXPECT_TRUE(leaves_alone_after(p, now, 1, 10, sent));
  EXPECT_FALSE(p.is_time(now + moment - 1));
  EXPECT_TRUE(p.is_time(now + moment));
  EXPECT_TRUE(p.is_time(now - 1)) << "another core's clock is a little behind";
  EXPECT_TRUE(leaves_alone_after(p, now, 100, moment, sent)) << "as it looks now";
  EXPECT_FALSE(leaves_alone_after(p, now, 1, 2 * moment, sent)) << "one that came late";
}

TEST(reading_pace, looks_at_once_for_an_answer) {
  reading_pace p(moment);
  std::uint64_t now = 1'000'000, sent = 0;
  EXPECT_FALSE(leaves_alone_after(p, now, 1000, 10, sent, 1));
  EXPECT_TRUE(leaves_alone_after(p, now, 1000, 10, sent));
  EXPECT_FALSE(p.leaves_alone(sent + 1)) << "something has just been sent";
}

TEST(reading_pace, reads_a_train_on_although_it_says_now_and_then_that_there_is_room) {
  reading_pace p(moment);
  std::uint64_t now = 1'000'000, sent = 0;
  for (int i = 0; i < 20; ++i) {
    // Each look finds several, and few looks lie between two words.
    for (int look = 0; look < 2; ++look) {
      (void)leaves_alone_after(p, now, 1, moment, sent, look == 0 ? 1 : 0);
      for (int more = 0; more < 7; ++more) p.found_more();
    }
    if (i > 2) {
      EXPECT_TRUE(p.leaves_alone(sent)) << i;
    }
  }
  EXPECT_FALSE(leaves_alone_after(p, now, 10, 10, sent, 1)) << "answers";
}

TEST(reading_pace, waits_longer_for_large_messages) {
  reading_pace p(moment);
  std::uint64_t now = 1'000'000, sent = 0;
  const std::uint64_t longest = reading_pace::longest * moment;
  EXPECT_TRUE(leaves_alone_after(p, now, 100, longest, sent, 0, 1 << 16));
  EXPECT_FALSE(p.is_time(now + longest - 1));
  EXPECT_TRUE(p.is_time(now + longest));
  EXPECT_FALSE(leaves_alone_after(p, now, 100, longest, sent, 0, 64)) << "small ones come late";
}

TEST(ring, is_as_large_as_the_nodes_of_a_host_can_afford) {
  EXPECT_EQ(ring_bytes_for(2), std::size_t{4} << 20);
  for (std::size_t nodes = 1; nodes <= 256; ++nodes) {
    const std::size_t bytes = ring_bytes_for(nodes);
    EXPECT_GE(bytes, std::size_t{256} << 10);
    EXPECT_TRUE(bytes == std::size_t{256} << 10 || nodes * (nodes - 1) * bytes <= 64U << 20)
        << nodes;
    EXPECT_LE(bytes, nodes > 1 ? ring_bytes_for(nodes - 1) : bytes);
  }
}

TEST(streaming_copy, copies_from_and_to_any_place) {
  std::vector<std::byte> from(400), to(600), wanted(600);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i % 251 + 1);
  for (std::size_t bytes : {0, 1, 63, 64, 65, 127, 128, 200, 300}) {
    for (std::size_t source = 0; source < 65; source += 13) {
      for (std::size_t target = 0; target < 128; ++target) {
        std::fill(to.begin(), to.end(), std::byte{0});
        std::fill(wanted.begin(), wanted.end(), std::byte{0});
        streaming_copy(to.data() + target, from.data() + source, bytes);
        std::memcpy(wanted.data() + target, from.data() + source, bytes);
        ASSERT_EQ(to, wanted) << bytes << " bytes from " << source << " to " << target;
      }
    }
  }
}

// Through trials of both ways, and sizes on both sides of where they begin.
TEST(ring, hands_over_large_records_as_they_were_written) {
  constexpr std::size_t ring_bytes = std::size_t{64} << 10;
  constexpr unsigned trials = (2 * quicker_way::rest_most + 4) * (ring_bytes / 4096);
  constexpr unsigned count = strata::test::scaled(2U * trials, trials / 2);
  const auto words = std::make_unique<ring_words>();
  std::vector<std::byte> data(ring_bytes);
  const auto record = [](unsigned i) {
    std::vector<std::byte> all(choice_bytes_min - 64 + i % 7 * 512);
    for (std::size_t k = 0; k < all.size(); ++k) all[k] = static_cast<std::byte>(i * 31 + k);
    return all;
  };

  const auto read_all = [&] {
    ring_reader in;
    in.attach(words.get(), data.data(), ring_bytes);
    header h{};
    std::span<const std::byte> payload;
    for (unsigned i = 0; i < count;) {
      const auto outcome = in.read(h, payload);
      ASSERT_NE(outcome, ring_reader::outcome::malformed) << i;
      if (outcome == ring_reader::outcome::empty) {
        std::this_thread::yield();
        continue;
      }
      EXPECT_EQ(std::vector(payload.begin(), payload.end()), record(i)) << i;
      in.release();
      ++i;
    }
  };
  std::atomic<bool> ended{false};
  std::thread reader([&] {
    read_all();
    ended = true;  // perhaps before its time
  });
  ring_writer out(words.get(), data.data(), ring_bytes);
  for (unsigned i = 0; i < count; ++i) {
    const std::vector<std::byte> all = record(i);
    header h{};
    h.length = static_cast<std::uint32_t>(all.size());
    const std::span<const std::byte> whole(all);
    while (!out.write(h, whole.first(8), whole.subspan(8)) && !ended) std::this_thread::yield();
  }
  reader.join();
}

// What a writer that has gone astray may leave there: its node is lost by that, and nothing outside
// the ring is read.
class astray_ring : public testing::Test {
 protected:
  static constexpr std::size_t bytes = 1024;

  astray_ring() { in_.attach(words_.get(), data_.data(), bytes); }
  // What read() says to so many bytes at the beginning.
  ring_reader::outcome say(std::uint64_t tail) {
    words_->tail.store(tail);
    header h{};
    std::span<const std::byte> payload;
    return in_.read(h, payload);
  }
  void put(std::size_t position, std::uint32_t length) {
    header h{};
    h.length = length;
    std::memcpy(data_.data() + position, &h, sizeof(h));
  }
  // So that what comes next lies there.
  void read_up_to(std::size_t position) {
    put(0, static_cast<std::uint32_t>(position - sizeof(header)));
    ASSERT_EQ(say(position), ring_reader::outcome::message);
    in_.release();
  }

  const std::unique_ptr<ring_words> words_ = std::make_unique<ring_words>();
  std::vector<std::byte> data_{bytes};
  ring_reader in_;
};

TEST_F(astray_ring, has_a_tail_that_no_writer_can_have_written) {
  for (const std::uint64_t tail : {bytes + record_align, std::size_t{1} << 40, SIZE_MAX}) {
    EXPECT_EQ(say(tail), ring_reader::outcome::malformed) << tail;
    EXPECT_TRUE(in_.has_something()) << "who asks only this reads again";
  }
  read_up_to(64);
  EXPECT_EQ(say(48), ring_reader::outcome::malformed) << "behind what has been read";
  EXPECT_EQ(say(64), ring_reader::outcome::empty);
}

TEST_F(astray_ring, has_a_record_of_a_length_that_cannot_be) {
  for (const std::uint32_t length : {skip_mark - 1, 0x7fff'ffffU, std::uint32_t{bytes}}) {
    put(0, length);
    EXPECT_EQ(say(bytes), ring_reader::outcome::malformed) << length;
  }
}

TEST_F(astray_ring, has_a_record_that_goes_on_beyond_the_tail) {
  put(0, 64);
  EXPECT_EQ(say(64), ring_reader::outcome::malformed);
}

TEST_F(astray_ring, has_not_even_a_header) { EXPECT_EQ(say(8), ring_reader::outcome::malformed); }

TEST_F(astray_ring, has_a_record_that_goes_on_beyond_the_end) {
  read_up_to(bytes - 64);
  put(bytes - 64, 64);
  EXPECT_EQ(say(bytes + 64), ring_reader::outcome::malformed);
}

TEST_F(astray_ring, says_to_go_on_where_there_is_nothing) {
  read_up_to(bytes - 64);
  put(bytes - 64, skip_mark);
  EXPECT_EQ(say(bytes), ring_reader::outcome::malformed);
}

TEST_F(astray_ring, says_twice_to_go_on_at_the_beginning) {
  read_up_to(bytes - 64);
  put(bytes - 64, skip_mark);
  put(0, skip_mark);
  EXPECT_EQ(say(bytes + 64), ring_reader::outcome::malformed);
}

// A page that is touched for the first time costs both ends; many at once cost little more.
TEST(ring, has_memory_ahead_of_its_writer_but_no_more_than_is_used) {
  constexpr std::size_t pages = 64;
  const os::page_range other(os::page_bytes());
  if (!os::populate(other.data(), other.size()))
    GTEST_SKIP() << "this kernel does not give memory ahead";
  const os::page_range data(pages * os::page_bytes());
  ring_words words{};
  ring_writer out(&words, data.data(), data.size());
  ring_reader in;
  in.attach(&words, data.data(), data.size());
  const std::vector<std::byte> payload(1000);
  std::size_t written = 0, most = 0;
  for (std::size_t n = 0; n < 2 * data.size(); n += record_bytes(payload.size())) {
    header h{};
    h.length = static_cast<std::uint32_t>(payload.size());
    ASSERT_TRUE(out.write(h, payload, {}));
    std::span<const std::byte> got;
    ASSERT_EQ(in.read(h, got), ring_reader::outcome::message);
    in.release();
    written = std::min(data.size(), n + record_bytes(payload.size()));
    std::vector<unsigned char> there(pages);
    ASSERT_TRUE(data.residency(0, data.size(), there.data()));
    const auto have =
        static_cast<std::size_t>(std::count(there.begin(), there.end(), 1)) * os::page_bytes();
    EXPECT_GE(have, written);
    EXPECT_LE(have, 2 * written + 2 * os::page_bytes());
    most = std::max(most, have - std::min(have, written));
  }
  EXPECT_GE(most, std::size_t{40} << 10);
}

}  // namespace
}  // namespace strata::net::shm
