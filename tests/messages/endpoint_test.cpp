// SPDX-License-Identifier: Apache-2.0
// Messages between threads of one process.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "../sched/support.hpp"
#include "strata/fiber.hpp"
#include "strata/message.hpp"
#include "strata/thread.hpp"

namespace {

using namespace strata;
using namespace std::chrono_literals;
using test::scaled;
using test::with_workers;

std::span<const std::byte> text(std::string_view s) { return std::as_bytes(std::span(s)); }
std::string as_text(const message& m) {
  return {reinterpret_cast<const char*>(m.content.data()), m.content.size()};
}

class endpoints : public testing::TestWithParam<unsigned> {
 protected:
  template <class F>
  static void run(F&& f) {
    runtime rt(with_workers(GetParam()));
    rt.run(f);
  }
};
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

TEST_P(endpoints, choose_by_source_and_tag) {
  run([] {
    endpoint a, b, c;
    a.send(c.id(), 1, text("a1"));
    b.send(c.id(), 1, text("b1"));
    a.send(c.id(), 2, text("a2"));
    b.send(c.id(), 2, text("b2"));
    EXPECT_EQ(as_text(c.receive_message(b.id(), 2)), "b2");
    EXPECT_EQ(as_text(c.receive_message(any_endpoint, 2)), "a2");
    EXPECT_EQ(as_text(c.receive_message(b.id())), "b1");
    EXPECT_EQ(as_text(c.receive_message()), "a1");
  });
}

TEST_P(endpoints, choose_by_node) {
  run([] {
    const endpoint_id here = any_endpoint_on(node_id());
    endpoint a, b, c;
    EXPECT_FALSE(c.probe(here).has_value());
    a.send(c.id(), 1, text("a1"));
    b.send(c.id(), 2, text("b2"));
    b.send(c.id(), 1, text("b1"));
    a.send(c.id(), 2, text("a2"));
    const std::optional<message_info> seen = c.probe(here, 2);
    ASSERT_TRUE(seen.has_value());
    EXPECT_EQ(seen->source, b.id());
    EXPECT_EQ(c.wait_probe(here).source, a.id());
    EXPECT_EQ(as_text(c.receive_message(here, 2)), "b2");
    std::array<std::byte, 2> buffer;
    EXPECT_EQ(c.receive(buffer, here, 2).source, a.id());
    EXPECT_EQ(as_text(c.receive_message(here)), "a1");
    transfer last = c.start_receive(buffer, here);
    EXPECT_TRUE(last.test());
    EXPECT_EQ(last.wait().source, b.id());
    EXPECT_FALSE(c.probe(here).has_value());

    thread receiver([&] { EXPECT_EQ(c.receive_value<int>(here, 5), 42); });
    b.send_value(c.id(), 5, 42);
    receiver.join();
  });
}

// Whatever they leave open: the source, the endpoint of a node, the tag.
TEST_P(endpoints, match_receives_of_every_shape_in_their_order) {
  run([] {
    endpoint a, b;
    const endpoint_id here = any_endpoint_on(node_id());
    const std::array<std::pair<endpoint_id, message_tag>, 6> shapes{{{here, 3},
                                                                     {any_endpoint, any_tag},
                                                                     {a.id(), any_tag},
                                                                     {here, any_tag},
                                                                     {any_endpoint, 3},
                                                                     {a.id(), 3}}};
    std::array<int, shapes.size()> values{};
    std::array<transfer, shapes.size()> receives;
    const auto begin = [&](std::size_t i) {
      receives[i] = b.start_receive(std::as_writable_bytes(std::span(&values[i], 1)),
                                    shapes[i].first, shapes[i].second);
    };
    for (std::size_t i = 0; i < shapes.size(); ++i) begin(i);
    EXPECT_TRUE(receives[3].cancel());
    begin(3);  // is the last one now
    for (int i = 0; i < static_cast<int>(shapes.size()); ++i) a.send_value(b.id(), 3, i);
    constexpr std::array<std::size_t, shapes.size()> order{0, 1, 2, 4, 5, 3};
    for (std::size_t i = 0; i < order.size(); ++i) {
      EXPECT_EQ(receives[order[i]].wait().source, a.id());
      EXPECT_EQ(values[order[i]], static_cast<int>(i));
    }
  });
}

TEST_P(endpoints, match_receives_in_their_order) {
  run([] {
    endpoint a, b;
    int first = 0, second = 0, third = 0;
    const auto room = [](int& x) { return std::as_writable_bytes(std::span(&x, 1)); };
    transfer any = b.start_receive(room(first));
    transfer tagged = b.start_receive(room(second), any_endpoint, 3);
    transfer sourced = b.start_receive(room(third), a.id());
    EXPECT_FALSE(any.test());
    for (int i = 1; i <= 3; ++i) a.send_value(b.id(), i == 2 ? 3 : 1, i);
    EXPECT_EQ(any.wait().tag, 1U);
    EXPECT_EQ(tagged.wait().tag, 3U);
    EXPECT_EQ(sourced.wait().tag, 1U);
    EXPECT_EQ(first, 1);
    EXPECT_EQ(second, 2);
    EXPECT_EQ(third, 3);
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

// The way that most messages take: one thread waits there, alone.
TEST_P(endpoints, reach_who_waits_alone) {
  run([] {
    endpoint a, b, c;
    thread receiver([&] {
      std::array<std::byte, 4> small;
      const message_info m = b.receive(small, a.id(), 7);
      EXPECT_EQ(m.source, a.id());
      EXPECT_EQ(m.target, b.id());
      EXPECT_EQ(m.tag, 7U);
      EXPECT_EQ(m.bytes, 2U);
      EXPECT_EQ(std::memcmp(small.data(), "ok", 2), 0);
      EXPECT_THROW((void)b.receive(small, c.id(), 9), message_too_large_error);
      EXPECT_EQ(b.receive({}, any_endpoint, 10).bytes, 0U);
    });
    this_thread::yield();  // with one worker it waits from now on
    c.send(b.id(), 7, text("who"));
    a.send(b.id(), 8, text("what"));
    a.send(b.id(), 7, text("ok"));
    this_thread::yield();
    c.send(b.id(), 9, text("large"));
    this_thread::yield();
    a.send(b.id(), 10, std::span<const std::byte>());
    receiver.join();
    for (const char* const left : {"who", "what", "large"})
      EXPECT_EQ(as_text(b.receive_message()), left);
    EXPECT_FALSE(b.probe().has_value());
  });
}

TEST_P(endpoints, cancel_what_has_not_begun) {
  run([] {
    endpoint a, b;
    std::array<std::byte, 8> first, second;
    transfer one = b.start_receive(first), two = b.start_receive(second);
    EXPECT_TRUE(one.cancel());
    EXPECT_FALSE(one.valid());
    a.send(b.id(), 1, text("x"));
    EXPECT_FALSE(two.cancel());
    EXPECT_EQ(two.wait().bytes, 1U);
    EXPECT_FALSE(two.valid());
    EXPECT_THROW(two.wait(), misuse_error);
    EXPECT_THROW((void)two.test(), misuse_error);

    transfer sends = a.start_synchronous_send(b.id(), 2, text("never seen"));
    EXPECT_FALSE(sends.test());
    EXPECT_TRUE(sends.cancel());
    EXPECT_FALSE(b.probe().has_value());
    { transfer forgotten = b.start_receive(first); }
    a.send(b.id(), 3, text("y"));
    EXPECT_EQ(b.receive(second).tag, 3U);
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

TEST_P(endpoints, receive_what_they_do_not_know_the_size_of_by_a_deadline) {
  run([] {
    endpoint a, b;
    std::vector<std::byte> content;
    transfer one = b.start_receive_message(content, a.id(), 3);
    EXPECT_FALSE(one.wait_for(1ms).has_value());
    EXPECT_FALSE(one.wait_until(std::chrono::system_clock::now()).has_value());
    EXPECT_FALSE(one.wait_until(std::chrono::steady_clock::now() + 1ms).has_value());
    a.send(b.id(), 3, text("as long as it is"));
    const auto got = one.wait_until(std::chrono::steady_clock::now() + 1h);
    ASSERT_TRUE(got.has_value());
    EXPECT_EQ(got->bytes, 16U);
    EXPECT_EQ(as_text({*got, content}), "as long as it is");
    EXPECT_FALSE(one.valid());
  });
}

TEST_P(endpoints, end_synchronous_sends_with_their_match) {
  run([] {
    endpoint a, b;
    transfer sends = a.start_synchronous_send(b.id(), 2, text("seen"));
    EXPECT_FALSE(sends.wait_for(1ms).has_value());
    EXPECT_EQ(as_text(b.receive_message()), "seen");
    EXPECT_TRUE(sends.test());
    EXPECT_EQ(sends.wait().bytes, 4U);
  });
}

TEST_P(endpoints, wait_for_any_of_several) {
  run([] {
    endpoint a;
    std::array<endpoint, 5> all;
    std::array<int, 5> values{};
    thread sender([&] {
      for (int i = 0; i < 500; ++i) {
        a.send_value(all[static_cast<std::size_t>(i * 3 % 5)].id(), 0, i);
        if (i % 7 == 0) this_thread::yield();
      }
    });
    std::array<transfer, 5> receives;
    const auto begin = [&](std::size_t i) {
      receives[i] = all[i].start_receive(std::as_writable_bytes(std::span(&values[i], 1)));
    };
    for (std::size_t i = 0; i < 5; ++i) begin(i);
    std::array<int, 5> seen{};
    for (int i = 0; i < 500; ++i) {
      const std::size_t which = wait_any(receives);
      ASSERT_LT(which, 5U);
      ASSERT_TRUE(receives[which].test());
      receives[which].wait();
      EXPECT_EQ(static_cast<std::size_t>(values[which]) * 3 % 5, which);
      ++seen[which];
      begin(which);
    }
    for (const int n : seen) EXPECT_EQ(n, 100);
    sender.join();
    std::array<transfer, 3> none;
    EXPECT_THROW((void)wait_any(none), misuse_error);
    EXPECT_THROW((void)wait_any_for(none, 1ms), misuse_error);
    // All of them wait still, and go on when the time is over.
    EXPECT_FALSE(wait_any_for(receives, 1ms).has_value());
    a.send_value(all[3].id(), 0, 7);
    EXPECT_EQ(wait_any_for(receives, 1h), 3U);
    EXPECT_FALSE(receives[2].wait_for(1ms).has_value());
    // The same until a time, on clocks of both kinds.
    using std::chrono::steady_clock;
    using std::chrono::system_clock;
    EXPECT_EQ(wait_any_until(receives, steady_clock::now()), 3U) << "has ended";
    receives[3].wait();
    EXPECT_FALSE(wait_any_until(receives, system_clock::now() + 1ms).has_value());
    a.send_value(all[1].id(), 0, 8);
    EXPECT_EQ(wait_any_until(receives, system_clock::now() + 1h), 1U);
    EXPECT_THROW((void)wait_any_until(none, steady_clock::now()), misuse_error);
  });
}

TEST_P(endpoints, wait_for_all_of_several_and_say_what_came) {
  run([] {
    endpoint a, b;
    std::array<std::array<std::byte, 8>, 3> rooms{};
    std::array<transfer, 4> all;  // the second one is none
    all[0] = b.start_receive(rooms[0], any_endpoint, 5);
    all[2] = b.start_receive(rooms[1], any_endpoint, 6);
    all[3] = a.start_send(b.id(), 7, text("out"));
    a.send(b.id(), 6, text("four"));
    a.send(b.id(), 5, text("five!"));
    const std::vector<message_info> came = wait_all(all);
    ASSERT_EQ(came.size(), 4U);
    EXPECT_EQ(came[0].bytes, 5U);
    EXPECT_EQ(came[0].tag, 5U);
    EXPECT_EQ(came[0].source, a.id());
    EXPECT_EQ(came[1].bytes, 0U);
    EXPECT_EQ(came[2].bytes, 4U);
    EXPECT_EQ(came[2].tag, 6U);
    EXPECT_EQ(came[3].bytes, 3U);
    for (const transfer& t : all) EXPECT_FALSE(t.valid());
    EXPECT_EQ(as_text(b.receive_message()), "out");
    // An error comes out when all have ended.
    all[0] = b.start_receive(std::span(rooms[0]).first(1));
    all[1] = b.start_receive(rooms[1], any_endpoint, 9);
    a.send(b.id(), 8, text("long"));
    a.send(b.id(), 9, text("fits"));
    EXPECT_THROW(wait_all(all), message_too_large_error);
    for (const transfer& t : all) EXPECT_FALSE(t.valid());
    EXPECT_EQ(as_text(b.receive_message()), "long");
  });
}

TEST_P(endpoints, that_have_ended_are_named) {
  run([] {
    endpoint a;
    endpoint_id gone;
    {
      const endpoint b;
      gone = b.id();
    }
    try {
      a.send(gone, 1, text("x"));
      ADD_FAILURE() << "nobody is there";
    } catch (const endpoint_closed_error& e) {
      EXPECT_EQ(e.which(), gone);
    }
    const endpoint next;  // in the same place of the table
    EXPECT_NE(next.id(), gone);
    EXPECT_THROW(a.send(gone, 1, text("x")), endpoint_closed_error);

    auto b = std::make_unique<endpoint>();
    thread waits([&, id = b->id()] {
      EXPECT_THROW(a.start_synchronous_send(id, 1, text("x")).wait(), endpoint_closed_error);
    });
    transfer receives;
    std::array<std::byte, 1> buffer;
    receives = b->start_receive(buffer, b->id());
    while (!b->probe()) this_thread::yield();
    b.reset();
    waits.join();
    EXPECT_THROW(receives.wait(), endpoint_closed_error);
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
      thread receiver(
          [&] { EXPECT_THROW((void)b.receive_message(a.id(), 1), message_too_large_error); });
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

TEST_P(endpoints, refuse_misuse) {
  EXPECT_THROW(endpoint(), misuse_error);
  run([] {
    endpoint a;
    EXPECT_THROW(a.send(endpoint_id(), 1, text("")), misuse_error);
    EXPECT_THROW(a.send(a.id(), any_tag, text("")), misuse_error);
    EXPECT_THROW(
        a.send(endpoint_id::from_bits(a.id().bits() | std::uint64_t{7} << 48), 1, text("")),
        misuse_error);
    EXPECT_THROW(a.send(any_endpoint_on(node_id()), 1, text("")), misuse_error);
    std::array<std::byte, 1> buffer;
    const endpoint_id nowhere = any_endpoint_on(7);
    EXPECT_THROW(a.receive(buffer, nowhere), misuse_error);
    EXPECT_THROW((void)a.receive_message(nowhere), misuse_error);
    EXPECT_THROW((void)a.start_receive(buffer, nowhere), misuse_error);
    EXPECT_THROW((void)a.probe(nowhere), misuse_error);
    EXPECT_THROW((void)a.wait_probe(nowhere), misuse_error);
    a.send_value(a.id(), 1, 'x');
    EXPECT_THROW(a.receive_value<int>(), misuse_error);
  });
}

struct impatient : threaded {
  endpoint* here;
  bool* was_refused;
  slot_ptr done;
  void start() {
    EXPECT_THROW((void)here->receive_message(), misuse_error);
    EXPECT_THROW((void)here->wait_probe(), misuse_error);
    *was_refused = true;
    sync(done);
    terminate();
  }
};

TEST_P(endpoints, do_not_wait_in_fibers) {
  run([] {
    endpoint a;
    bool was_refused = false;
    completion done(1);
    token<impatient>(&a, &was_refused, done.sptr());
    done.wait();
    EXPECT_TRUE(was_refused);
    // Nothing is left of them: the next one who waits gets the message.
    thread sender([&, to = a.id()] { endpoint().send(to, 1, text("x")); });
    EXPECT_EQ(as_text(a.receive_message()), "x");
    sender.join();
    EXPECT_FALSE(a.probe());
  });
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
