// SPDX-License-Identifier: Apache-2.0
// Messages between threads of one process: who waits, for how long, and for what in vain.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <vector>

#include "../common/refuse_threads.hpp"
#include "endpoints.hpp"
#include "strata/fiber.hpp"
#include "strata/message.hpp"
#include "strata/thread.hpp"

namespace {

using namespace strata;
using namespace std::chrono_literals;
using test::as_text;
using test::endpoints;
using test::text;

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

// There is no thread for the deadline. 42: the wait has thrown, and the receive goes on as before.
int wait_without_a_thread_for_the_deadline() {
  runtime rt(test::with_workers(1));
  return rt.run([] {
    endpoint a, b;
    int value = 0;
    transfer receives = b.start_receive(std::span(&value, 1));
    test::refuse_threads();
    try {
      (void)receives.wait_for(24h);
      return 4;
    } catch (const std::system_error&) {
    }
    test::allow_threads();
    if (!receives.valid() || receives.test()) return 5;
    thread sender([&] { a.send_value(b.id(), 1, 7); });
    const message_info came = receives.wait();
    sender.join();
    return came.bytes == sizeof(int) && came.source == a.id() && value == 7 ? 42 : 6;
  });
}

TEST(transfers, go_on_where_there_is_no_thread_for_a_deadline) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  if (test::address_sanitizer || test::thread_sanitizer)
    GTEST_SKIP() << "the sanitizer needs the addresses";
  EXPECT_EXIT(std::_Exit(wait_without_a_thread_for_the_deadline()), testing::ExitedWithCode(42),
              "");
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

// What was there before is gone at once, and does not live on in what was moved from.
TEST_P(endpoints, end_when_another_one_is_assigned) {
  run([] {
    endpoint sender, mine, other;
    const endpoint_id before = mine.id(), after = other.id();
    std::array<std::byte, 1> buffer;
    transfer receives = mine.start_receive(buffer);
    mine = std::move(other);
    EXPECT_EQ(mine.id(), after);
    ASSERT_TRUE(receives.test());
    EXPECT_THROW(receives.wait(), endpoint_closed_error);
    EXPECT_THROW(sender.send(before, 1, text("x")), endpoint_closed_error);
    sender.send(after, 1, text("x"));
    EXPECT_EQ(as_text(mine.receive_message()), "x");
    EXPECT_THROW((void)other.probe(), misuse_error) << "nothing is left of it";
    endpoint& same = mine;
    mine = std::move(same);
    EXPECT_EQ(mine.id(), after);
    EXPECT_FALSE(mine.probe());
  });
}

TEST_P(endpoints, flush_to_those_that_are_there) {
  run([] {
    endpoint a;
    endpoint_id gone;
    {
      const endpoint b;
      gone = b.id();
      a.send(gone, 1, text("x"));
      a.flush(gone);
    }
    EXPECT_THROW(a.flush(gone), endpoint_closed_error);
    EXPECT_THROW(a.flush(endpoint_id()), misuse_error);
    EXPECT_THROW(a.flush(any_endpoint_on(node_id())), misuse_error);
    EXPECT_THROW(a.flush(endpoint_id::from_bits(a.id().bits() | std::uint64_t{7} << 48)),
                 misuse_error);
  });
}

TEST_P(endpoints, refuse_misuse) {
  EXPECT_THROW(endpoint(), misuse_error);
  run([] {
    endpoint a;
    EXPECT_THROW(a.send(endpoint_id(), 1, text("")), misuse_error);
    for (const message_tag tag : {any_tag, message_tag_max + 1, any_tag - 1}) {
      const std::vector<std::byte> bytes(3);
      EXPECT_THROW(a.send(a.id(), tag, bytes), misuse_error);
      EXPECT_THROW(a.send(a.id(), tag, std::vector<std::byte>(3)), misuse_error);
      EXPECT_THROW((void)a.start_send(a.id(), tag, bytes), misuse_error);
      EXPECT_THROW((void)a.start_synchronous_send(a.id(), tag, bytes), misuse_error);
    }
    for (const message_tag tag : {message_tag_max + 1, any_tag - 1}) {
      std::vector<std::byte> bytes(3);
      EXPECT_THROW((void)a.receive(bytes, any_endpoint, tag), misuse_error);
      EXPECT_THROW((void)a.receive_message(any_endpoint, tag), misuse_error);
      EXPECT_THROW((void)a.start_receive(bytes, any_endpoint, tag), misuse_error);
      EXPECT_THROW((void)a.start_receive_message(bytes, any_endpoint, tag), misuse_error);
      EXPECT_THROW((void)a.probe(any_endpoint, tag), misuse_error);
      EXPECT_THROW((void)a.wait_probe(any_endpoint, tag), misuse_error);
    }
    a.send_value(a.id(), message_tag_max, 1);
    EXPECT_EQ(a.receive_message().tag, message_tag_max);
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

// Who waits for room is woken first, and does not use up all of it before the others run: of three
// rounds two are its own, as a receiver that waits gets one message more without taking room.
TEST(endpoints_on_one_worker, give_those_who_want_their_room_turns) {
  runtime rt(test::with_workers(1));
  rt.run([] {
    constexpr unsigned senders = 4, each = 2000;
    endpoint here;
    std::vector<thread> threads;
    for (unsigned i = 0; i < senders; ++i) {
      threads.emplace_back([i, to = here.id()] {
        endpoint mine;
        const std::array<std::byte, 1000> content{};
        for (unsigned j = 0; j < each; ++j) mine.send(to, i, content);
      });
    }
    std::array<unsigned, senders> received{};
    for (unsigned i = 0; i < senders * each; ++i) {
      ++received[here.receive_message().tag];
      if (i == senders * each / 2) {
        for (const unsigned n : received) EXPECT_GE(n, each / 4) << "while others have sent more";
      }
    }
    for (thread& t : threads) t.join();
  });
}

}  // namespace
