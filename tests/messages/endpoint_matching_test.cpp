// SPDX-License-Identifier: Apache-2.0
// Messages between threads of one process: which one a receive takes.
#include <gtest/gtest.h>
#include <malloc.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "endpoints.hpp"
#include "strata/message.hpp"
#include "strata/thread.hpp"

namespace {

using namespace strata;
using namespace std::chrono_literals;
using test::as_text;
using test::endpoints;
using test::text;

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

// What the program has of the heap; nothing where a sanitizer keeps it.
std::size_t allocated_bytes() {
  const struct mallinfo2 m = ::mallinfo2();
  return m.uordblks + m.hblkhd;
}

TEST_P(endpoints, give_the_memory_of_many_receives_and_messages_back_at_their_end) {
  run([] {
    constexpr unsigned many = 100'000;
    std::vector<transfer> all(many);  // stays
    std::vector<char> room(many);
    endpoint a;
    const auto post_and_keep = [&](unsigned n) {
      endpoint receives, keeps;
      for (unsigned i = 0; i < n; ++i)
        all[i] = receives.start_receive(std::as_writable_bytes(std::span(&room[i], 1)), a.id(), i);
      for (unsigned i = 0; i < n; ++i) all[i] = transfer();
      for (unsigned i = 0; i < n; ++i)
        all[i] = a.start_send(keeps.id(), i, std::as_bytes(std::span(&room[i], 1)));
      for (unsigned i = n; i-- > 0;) (void)keeps.receive_value<char>(a.id(), i);
      for (unsigned i = 0; i < n; ++i) all[i] = transfer();
    };
    post_and_keep(2);
    const std::size_t before = allocated_bytes();
    post_and_keep(many);
    EXPECT_LT(allocated_bytes(), before + (std::size_t{128} << 10));
  });
}

}  // namespace
