// SPDX-License-Identifier: Apache-2.0
// Messages of elements: ranges of values instead of bytes.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../sched/support.hpp"
#include "strata/message.hpp"
#include "strata/thread.hpp"

namespace {

using namespace strata;

struct sample {
  std::uint32_t number;
  float value;
  friend bool operator==(const sample&, const sample&) = default;
};

// Neither what ends with the call, nor what cannot be written to.
template <class R>
concept can_start_send = requires(endpoint& e, R&& r) {
  e.start_send(endpoint_id(), 1, std::forward<R>(r));
  e.start_synchronous_send(endpoint_id(), 1, std::forward<R>(r));
};
template <class R>
concept can_receive = requires(endpoint& e, R&& r) {
  e.receive(std::forward<R>(r));
  e.start_receive(std::forward<R>(r));
};
static_assert(can_start_send<std::vector<sample>&> && can_start_send<const std::vector<sample>&>);
static_assert(can_start_send<std::span<const sample>> && can_start_send<int (&)[3]>);
static_assert(can_start_send<std::string_view> && can_start_send<std::array<int, 3>&>);
static_assert(!can_start_send<std::vector<sample>> && !can_start_send<std::array<int, 3>>);
static_assert(!can_start_send<std::vector<std::byte>>);
static_assert(!can_start_send<std::array<std::byte, 3>>);
static_assert(can_start_send<std::vector<std::byte>&> && can_start_send<std::span<std::byte>>);
static_assert(!can_start_send<std::vector<bool>&> && !can_start_send<std::vector<std::string>&>);
static_assert(can_receive<std::vector<sample>&> && can_receive<std::span<sample>>);
static_assert(can_receive<int (&)[3]> && can_receive<const std::span<int>&>);
static_assert(!can_receive<const std::vector<sample>&> && !can_receive<std::span<const sample>>);
static_assert(!can_receive<std::vector<sample>> && !can_receive<std::string_view>);

template <class F>
void in_a_runtime(F&& f) {
  runtime rt(test::with_workers(2));
  rt.run(f);
}

std::vector<sample> samples(std::size_t n) {
  std::vector<sample> all;
  for (std::uint32_t i = 0; i < n; ++i) all.push_back({i * 3, static_cast<float>(i) / 2});
  return all;
}

TEST(elements, come_as_they_were_sent) {
  in_a_runtime([] {
    endpoint a, b;
    // From few bytes to those that are received while their sender waits.
    for (const std::size_t n : {0UL, 1UL, 100UL, 100'000UL}) {
      const std::vector<sample> out = samples(n);
      std::vector<sample> in(n + 2, sample{7, 7});
      thread sender([&] { a.send(b.id(), 1, out); });
      const message_info m = b.receive(in, a.id(), 1);
      sender.join();
      EXPECT_EQ(m.bytes, n * sizeof(sample));
      EXPECT_EQ(m.source, a.id());
      ASSERT_EQ(m.count_of<sample>(), n);
      EXPECT_EQ(std::vector(in.begin(), in.end() - 2), out);
      EXPECT_EQ(in[n], (sample{7, 7})) << "what is behind them stays";
    }
  });
}

TEST(elements, are_those_of_any_contiguous_range) {
  in_a_runtime([] {
    endpoint a, b;
    const std::vector<int> out{1, 2, 3};
    const auto comes = [&](auto&& into) {
      std::fill(std::begin(into), std::end(into), 0);
      EXPECT_EQ(b.receive(into).template count_of<int>(), 3U);
      EXPECT_TRUE(std::equal(out.begin(), out.end(), std::begin(into)));
    };
    std::vector<int> vector(3);
    std::array<int, 4> array{};
    int plain[5] = {};
    a.send(b.id(), 1, out);
    comes(vector);
    a.send(b.id(), 1, std::span(out));
    comes(array);
    a.send(b.id(), 1, std::array{1, 2, 3});
    comes(plain);
    a.send(b.id(), 1, vector);
    comes(std::span(array));
    const int plain_out[] = {1, 2, 3};
    a.send(b.id(), 1, plain_out);
    comes(std::span<int, 4>(array));
    a.send(b.id(), 1, std::span<const int, 3>(plain_out));
    comes(vector);
  });
}

TEST(elements, are_letters_too) {
  in_a_runtime([] {
    endpoint a, b;
    std::string text = "text", room(10, '.');
    a.send(b.id(), 1, text);
    EXPECT_EQ(b.receive(room).count_of<char>(), 4U);
    EXPECT_EQ(room, "text......");
    a.send(b.id(), 1, std::string_view("more text").substr(0, 4));
    EXPECT_EQ(b.receive(text).bytes, 4U);
    EXPECT_EQ(text, "more");
    a.send(b.id(), 1, "text");
    EXPECT_EQ(b.receive(room).bytes, 5U) << "with the zero of a literal";
    EXPECT_EQ(room.substr(0, 5), std::string("text", 5));
  });
}

// Bytes are elements as well: what took a span of them still does.
TEST(elements, that_are_bytes_are_messages_as_before) {
  in_a_runtime([] {
    endpoint a, b;
    const std::vector<std::byte> out(5, std::byte{3});
    std::array<std::byte, 5> in{};
    a.send(b.id(), 1, out);
    EXPECT_EQ(b.receive(in).bytes, 5U);
    EXPECT_EQ(in[4], std::byte{3});
    std::vector<std::byte> handed(1 << 20);
    const std::byte* const where = handed.data();
    a.send(b.id(), 2, std::move(handed));
    EXPECT_EQ(b.receive_message(a.id(), 2).content.data(), where) << "handed over, not copied";
  });
}

TEST(elements, are_sent_and_received_while_others_go_on) {
  in_a_runtime([] {
    endpoint a, b;
    const std::vector<sample> out = samples(50'000);
    std::vector<sample> in(out.size()), less(out.size());
    transfer receives = b.start_receive(in, a.id(), 1);
    transfer others = b.start_receive(std::span(less).first(1000), a.id(), 2);
    transfer sends = a.start_send(b.id(), 1, out);
    transfer waits = a.start_synchronous_send(b.id(), 2, std::span(out).first(10));
    EXPECT_EQ(others.wait().count_of<sample>(), 10U);
    EXPECT_EQ(receives.wait().count_of<sample>(), out.size());
    sends.wait();
    waits.wait();
    EXPECT_EQ(in, out);
    EXPECT_EQ(less[9], out[9]);
  });
}

TEST(elements, of_which_too_many_come_stay_there) {
  in_a_runtime([] {
    endpoint a, b;
    std::array<int, 2> room{};
    a.send(b.id(), 1, std::array{1, 2, 3});
    try {
      b.receive(room);
      ADD_FAILURE() << "there is no room";
    } catch (const message_too_large_error& e) {
      EXPECT_EQ(e.which().count_of<int>(), 3U);
    }
    std::vector<int> all(b.probe().value().count_of<int>());
    b.receive(all);
    EXPECT_EQ(all, (std::vector{1, 2, 3}));

    transfer waits = b.start_receive(room);
    a.send(b.id(), 1, all);
    EXPECT_THROW(waits.wait(), message_too_large_error);
    EXPECT_EQ(b.receive(all).count_of<int>(), 3U);
  });
}

TEST(elements, are_whole) {
  in_a_runtime([] {
    endpoint a, b;
    std::array<std::uint64_t, 4> room{};
    a.send(b.id(), 1, std::array<std::uint32_t, 3>{});
    try {
      b.receive(room);
      ADD_FAILURE() << "one and a half";
    } catch (const misuse_error& e) {
      EXPECT_STREQ(e.what(),
                   "a message of 12 bytes is no whole number of elements of 8 bytes; receive it as "
                   "what was sent");
    }
    EXPECT_FALSE(b.probe().has_value()) << "it is gone";

    transfer waits = b.start_receive(room);
    a.send(b.id(), 1, std::array<std::uint32_t, 3>{});
    const message_info m = waits.wait();
    EXPECT_EQ(m.count_of<std::uint32_t>(), 3U);
    EXPECT_THROW((void)m.count_of<std::uint64_t>(), misuse_error);
  });
}

TEST(bytes, are_those_of_values_and_of_elements) {
  const std::vector<sample> all = samples(3);
  const std::array<std::uint16_t, 5> array{};
  const std::string text = "text";
  const auto is_memory_of = [](std::span<const std::byte> bytes, const void* at, std::size_t n) {
    return static_cast<const void*>(bytes.data()) == at && bytes.size() == n;
  };
  EXPECT_TRUE(is_memory_of(bytes_of(all), all.data(), 3 * sizeof(sample)));
  EXPECT_TRUE(is_memory_of(bytes_of(std::span(all)), all.data(), 3 * sizeof(sample)));
  EXPECT_TRUE(is_memory_of(bytes_of(std::span(all).subspan(1)), &all[1], 2 * sizeof(sample)));
  EXPECT_TRUE(is_memory_of(bytes_of(all[1]), &all[1], sizeof(sample)));
  EXPECT_TRUE(is_memory_of(bytes_of(array), &array, sizeof(array)));
  EXPECT_TRUE(is_memory_of(bytes_of(text), text.data(), 4));
  EXPECT_TRUE(is_memory_of(bytes_of(std::string_view(text)), text.data(), 4));
}

}  // namespace
