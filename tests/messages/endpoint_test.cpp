// SPDX-License-Identifier: Apache-2.0
// Messages between threads of one process: what comes, whose it is, and how much may wait.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cstring>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "endpoints.hpp"
#include "strata/message.hpp"
#include "strata/thread.hpp"

namespace {

using namespace strata;
using test::as_text;
using test::endpoints;
using test::scaled;
using test::text;

INSTANTIATE_TEST_SUITE_P(workers, endpoints, testing::Values(1U, 2U, 4U));

TEST_P(endpoints, carry_messages_in_order) {
  run([] {
    endpoint a, b;
    thread sender([&] {
      for (int i = 0; i < 1000; ++i) a.send_value(b.id(), 5, i);
    });
    for (int i = 0; i < 1000; ++i) EXPECT_EQ(b.receive_value<int>(a.id(), 5), i);
    sender.join();
  });
}

TEST_P(endpoints, tell_who_sent_what) {
  run([] {
    endpoint a, b;
    a.send(b.id(), 9, text("hello"));
    const std::optional<message_info> seen = b.probe();
    ASSERT_TRUE(seen.has_value());
    EXPECT_EQ(seen->source, a.id());
    EXPECT_EQ(seen->target, b.id());
    EXPECT_EQ(seen->tag, 9U);
    EXPECT_EQ(seen->bytes, 5U);
    EXPECT_FALSE(b.probe(b.id()).has_value());
    EXPECT_FALSE(b.probe(any_endpoint, 8).has_value());
    std::array<std::byte, 16> buffer;
    const message_info got = b.receive(buffer);
    EXPECT_EQ(got.source, a.id());
    EXPECT_EQ(got.tag, 9U);
    EXPECT_EQ(got.bytes, 5U);
    EXPECT_EQ(std::memcmp(buffer.data(), "hello", 5), 0);
    EXPECT_FALSE(b.probe().has_value());
  });
}

TEST_P(endpoints, tell_who_sent_a_value) {
  run([] {
    endpoint a, b;
    a.send_value(b.id(), 9, 5);
    a.send_value(b.id(), 8, 6);
    a.send_value(b.id(), 7, 'x');
    int n = 0;
    const message_info second = b.receive_value_into(n, any_endpoint, 8);
    EXPECT_EQ(n, 6);
    EXPECT_EQ(second.tag, 8U);
    const message_info first = b.receive_value_into(n);
    EXPECT_EQ(n, 5);
    EXPECT_EQ(first.source, a.id());
    EXPECT_EQ(first.target, b.id());
    EXPECT_EQ(first.tag, 9U);
    EXPECT_EQ(first.bytes, sizeof(int));
    EXPECT_THROW(b.receive_value_into(n), misuse_error) << "of another size";
  });
}

// Nobody receives for a while: the sender waits, memory stays bounded, nothing is lost.
TEST_P(endpoints, make_a_fast_sender_wait) {
  run([] {
    endpoint a, b;
    std::atomic<int> sent{0};
    const int all = 2000;
    thread sender([&] {
      std::vector<std::byte> bytes(1000);
      for (int i = 0; i < all; ++i) {
        std::memcpy(bytes.data(), &i, sizeof(i));
        a.send(b.id(), 0, bytes);
        ++sent;
      }
    });
    for (int i = 0; i < 1000; ++i) this_thread::yield();
    EXPECT_LE(sent, 66);  // 64 KiB
    for (int i = 0; i < all; ++i) {
      const message m = b.receive_message();
      int number = -1;
      ASSERT_EQ(m.content.size(), 1000U);
      std::memcpy(&number, m.content.data(), sizeof(number));
      ASSERT_EQ(number, i);
    }
    sender.join();
  });
}

TEST_P(endpoints, carry_nothing_and_much) {
  run([] {
    endpoint a, b;
    for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{16} << 10,
                                   (std::size_t{16} << 10) + 1, std::size_t{5} << 20}) {
      std::vector<std::byte> out(size), in(size);
      for (std::size_t i = 0; i < size; ++i) out[i] = static_cast<std::byte>(i * 7);
      thread sender([&] { a.send(b.id(), 1, out); });
      EXPECT_EQ(b.receive(in).bytes, size);
      EXPECT_EQ(in, out);
      sender.join();
    }
  });
}

TEST_P(endpoints, hand_vectors_over) {
  run([] {
    endpoint a, b;
    for (const bool waits : {false, true}) {
      std::vector<std::byte> content(1 << 20, std::byte{42});
      const std::byte* const where = content.data();
      thread sender;
      if (waits) {
        sender = thread([&] {
          (void)b.wait_probe(any_endpoint, 77);
          a.send(b.id(), 1, std::move(content));
        });
        a.send(b.id(), 77, text(""));
      } else {
        a.send(b.id(), 1, std::move(content));
      }
      const message m = b.receive_message(a.id(), 1);
      EXPECT_EQ(m.content.data(), where);
      EXPECT_EQ(m.content.size(), 1U << 20);
      if (waits) {
        sender.join();
        (void)b.receive_message(any_endpoint, 77);
      }
    }
  });
}

// Only what has gone is gone.
TEST_P(endpoints, leave_a_vector_that_is_not_sent_to_its_owner) {
  run([] {
    endpoint a;
    std::vector<std::byte> content(100, std::byte{42});
    const std::byte* const where = content.data();
    const auto expect_all = [&] {
      EXPECT_EQ(content.size(), 100U);
      EXPECT_EQ(content.data(), where);
    };
    EXPECT_THROW(a.send(a.id(), any_tag, std::move(content)), misuse_error);
    expect_all();
    EXPECT_THROW(a.send(endpoint_id(), 1, std::move(content)), misuse_error);
    expect_all();
    const endpoint_id gone = endpoint().id();
    EXPECT_THROW(a.send(gone, 1, std::move(content)), endpoint_closed_error);
    expect_all();
    a.send(a.id(), 1, std::move(content));
    EXPECT_TRUE(content.empty());
    EXPECT_EQ(a.receive_message().content.data(), where);
  });
}

TEST_P(endpoints, keep_a_message_that_is_too_large) {
  run([] {
    endpoint a, b;
    std::array<std::byte, 4> small;
    a.send(b.id(), 1, text("too large"));
    try {
      b.receive(small);
      ADD_FAILURE() << "it does not fit";
    } catch (const message_too_large_error& e) {
      EXPECT_EQ(e.which().bytes, 9U);
      EXPECT_EQ(e.which().tag, 1U);
    }
    EXPECT_EQ(as_text(b.receive_message()), "too large");

    transfer waits = b.start_receive(small);
    a.send(b.id(), 2, text("again too large"));
    EXPECT_THROW(waits.wait(), message_too_large_error);
    EXPECT_EQ(as_text(b.receive_message()), "again too large");
  });
}

// Of what nobody waits for: kept up to the limit, else it stays with its sender.
TEST_P(endpoints, keep_messages_up_to_the_eager_limit) {
  static constexpr std::size_t limit = eager_bytes_everywhere;
  run([] {
    endpoint a, b;
    std::vector<std::byte> small(limit), large(limit + 1);
    a.send(b.id(), 1, small);  // returns before there is a receive
    EXPECT_EQ(b.receive(large).bytes, limit);
    transfer sends = a.start_send(b.id(), 2, large);
    EXPECT_FALSE(sends.test());
    EXPECT_EQ(b.receive_message().bytes, limit + 1);
    sends.wait();
  });
}

TEST_P(endpoints, belong_to_threads) {
  run([] {
    endpoint& mine = this_thread::endpoint();
    EXPECT_EQ(&mine, &this_thread::endpoint());
    endpoint_id theirs;
    thread other([&, here = mine.id()] {
      theirs = this_thread::endpoint().id();
      this_thread::endpoint().send(here, 1, text("from a thread"));
    });
    EXPECT_EQ(as_text(mine.receive_message()), "from a thread");
    other.join();
    EXPECT_NE(theirs, mine.id());
    EXPECT_THROW(mine.send(theirs, 1, text("gone")), endpoint_closed_error);
  });
}

// As one that does not fit a buffer: it stays.
TEST_P(endpoints, keep_a_message_that_there_is_no_memory_for) {
#if defined(STRATA_ASAN)
  GTEST_SKIP() << "AddressSanitizer ends the program where there is no memory";
#endif
  constexpr std::size_t huge = std::size_t{1} << 46;
  void* const nothing =
      mmap(nullptr, huge, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (nothing == MAP_FAILED) GTEST_SKIP() << "no addresses for it";
  run([&] {
    endpoint a, b;
    for (const bool receiver_waits : {false, true}) {
      thread receiver([&] { EXPECT_THROW((void)b.receive_message(a.id(), 1), std::bad_alloc); });
      if (receiver_waits) this_thread::yield();
      transfer send = a.start_send(b.id(), 1, {static_cast<const std::byte*>(nothing), huge});
      receiver.join();
      const auto there = b.probe(a.id(), 1);
      ASSERT_TRUE(there.has_value());
      EXPECT_EQ(there->bytes, huge);
      EXPECT_TRUE(send.cancel());
    }
    a.send_value(b.id(), 1, 5);
    EXPECT_EQ(b.receive_value<int>(a.id(), 1), 5);
  });
  munmap(nothing, huge);
}

// Many threads, tags and sizes at once: everything arrives once, in the order of its pair and tag.
TEST_P(endpoints, survive_a_storm) {
  run([] {
    constexpr std::size_t threads = 16;
    const int each = scaled(400, 60);
    std::array<endpoint, threads> all;
    std::array<thread, threads> running;
    std::atomic<std::uint64_t> received{0};
    struct head {
      std::uint32_t from, number;
    };
    for (std::size_t me = 0; me < threads; ++me) {
      running[me] = thread([&, me] {
        std::minstd_rand random(static_cast<unsigned>(me) + 1);
        std::array<std::uint32_t, threads> next{};
        std::array<std::array<std::uint32_t, 3>, threads> seen{};
        std::vector<transfer> sends;
        std::vector<std::vector<std::byte>> kept;
        for (int i = 0; i < each; ++i) {
          const std::size_t to = random() % threads;
          const head h{static_cast<std::uint32_t>(me), ++next[to]};
          kept.emplace_back(sizeof(h) + random() % (random() % 16 == 0 ? 40'000 : 100));
          std::memcpy(kept.back().data(), &h, sizeof(h));
          sends.push_back(all[me].start_send(all[to].id(), random() % 3, kept.back()));
          while (const auto m = all[me].probe()) {
            const message got = all[me].receive_message(m->source, m->tag);
            head in;
            std::memcpy(&in, got.content.data(), sizeof(in));
            EXPECT_GT(in.number, seen[in.from][got.tag]);
            seen[in.from][got.tag] = in.number;
            ++received;
          }
          if (random() % 8 == 0) this_thread::yield();
        }
        // Until everybody has received everything.
        while (received != threads * static_cast<std::uint64_t>(each)) {
          while (all[me].probe()) {
            (void)all[me].receive_message();
            ++received;
          }
          this_thread::yield();
        }
        wait_all(sends);
      });
    }
    for (thread& t : running) t.join();
    EXPECT_EQ(received, threads * static_cast<std::uint64_t>(each));
  });
}

}  // namespace
