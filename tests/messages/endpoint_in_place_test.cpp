// SPDX-License-Identifier: Apache-2.0
// Messages of one process that are looked at where they are (endpoint::receive_in_place()).
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "endpoints.hpp"
#include "strata/fork_join.hpp"
#include "strata/message.hpp"
#include "strata/stats.hpp"
#include "strata/thread.hpp"

namespace {

using namespace strata;
using test::as_text;
using test::endpoints;
using test::text;

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// What a look has seen, and where.
struct seen {
  message_info info;
  std::string what;
  const std::byte* where = nullptr;
  unsigned times = 0;
  void operator()(const message_info& m, std::span<const std::byte> bytes) {
    *this = {m, text_of(bytes), bytes.data(), times + 1};
  }
};

TEST_P(endpoints, look_at_what_is_sent_to_who_waits) {
  run([] {
    endpoint a, b;
    const std::string sent(100'000, 's');
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{2}, sent.size()}) {
      seen s;
      message_info returned;
      thread receiver([&] { returned = b.receive_in_place(s, a.id(), 7); });
      this_thread::yield();  // with one worker it waits from now on
      a.send(b.id(), 8, text("another tag"));
      a.start_synchronous_send(b.id(), 7, text(sent).first(bytes)).wait();
      receiver.join();
      EXPECT_EQ(s.times, 1U);
      EXPECT_EQ(s.what, sent.substr(0, bytes));
      EXPECT_EQ(static_cast<const void*>(s.where), sent.data()) << "a copy of " << bytes;
      for (const message_info& m : {s.info, returned}) {
        EXPECT_EQ(m.source, a.id());
        EXPECT_EQ(m.target, b.id());
        EXPECT_EQ(m.tag, 7U);
        EXPECT_EQ(m.bytes, bytes);
      }
      EXPECT_EQ(as_text(b.receive_message()), "another tag");
    }
  });
}

TEST_P(endpoints, look_at_what_has_come_before) {
  run([] {
    endpoint a, b;
    a.send(b.id(), 1, text("kept"));
    std::vector<std::byte> given(50'000, std::byte{'g'});
    const std::byte* const where = given.data();
    a.send(b.id(), 2, std::move(given));
    const std::string large(100'000, 'l');
    thread sender([&] { a.send(b.id(), 3, text(large)); });
    seen kept, handed, with_its_sender;
    b.receive_in_place(with_its_sender, any_endpoint, 3);
    b.receive_in_place(kept);
    b.receive_in_place(handed);
    sender.join();
    EXPECT_EQ(kept.what, "kept");
    EXPECT_EQ(handed.where, where);
    EXPECT_EQ(handed.what, std::string(50'000, 'g'));
    EXPECT_EQ(static_cast<const void*>(with_its_sender.where), large.data());
    EXPECT_EQ(with_its_sender.what, large);
  });
}

TEST(endpoint_looks, copy_nothing) {
  runtime rt(test::with_workers(1));
  const message_statistics before = rt.stats().messages;
  rt.run([] {
    endpoint a, b;
    const std::string sent(1000, 's');
    seen s;
    thread waits([&] { b.receive_in_place(s); });
    this_thread::yield();
    a.send(b.id(), 1, text(sent));
    waits.join();
    thread sends([&] { a.start_synchronous_send(b.id(), 1, text(sent)).wait(); });
    this_thread::yield();
    b.receive_in_place(s);
    sends.join();
    EXPECT_EQ(s.times, 2U);
  });
  const message_statistics after = rt.stats().messages;
  EXPECT_EQ(after.bytes_copied, before.bytes_copied);
  EXPECT_EQ(after.handed_over, before.handed_over + 2);
}

// Whoever calls it: the sender, or the receiver itself.
TEST_P(endpoints, are_told_what_a_look_throws) {
  run([] {
    endpoint a, b;
    const auto throws = [](const message_info&, std::span<const std::byte> bytes) {
      throw std::runtime_error(text_of(bytes));
    };
    const auto expect_thrown = [&](const char* what) {
      try {
        b.receive_in_place(throws);
        ADD_FAILURE() << "nothing is thrown";
      } catch (const std::runtime_error& e) {
        EXPECT_STREQ(e.what(), what);
      }
    };
    a.send(b.id(), 1, text("first"));
    expect_thrown("first");
    thread receiver([&] { expect_thrown("second"); });
    this_thread::yield();
    a.send(b.id(), 1, text("second"));
    receiver.join();
    EXPECT_FALSE(b.probe().has_value()) << "it has been received all the same";
  });
}

TEST_P(endpoints, refuse_to_wait_in_a_look) {
  run([] {
    endpoint a, b, c;
    const auto waits = [&](const message_info&, std::span<const std::byte>) {
      EXPECT_THROW((void)c.receive_message(), misuse_error);
      EXPECT_THROW(fork2join([] {}, [] {}), misuse_error);
      EXPECT_THROW((void)this_thread::endpoint(), misuse_error);
    };
    a.send(b.id(), 1, text("before"));
    b.receive_in_place(waits);
    thread receiver([&] { b.receive_in_place(waits); });
    this_thread::yield();
    a.send(b.id(), 1, text("after"));
    receiver.join();
    // And so may both of them again.
    fork2join([&] { a.send(c.id(), 1, text("goes on")); }, [] {});
    EXPECT_EQ(as_text(c.receive_message()), "goes on");
  });
}

void count_a_look(const message_info& m, std::span<const std::byte> bytes) {
  EXPECT_EQ(m.bytes, bytes.size());
}

TEST_P(endpoints, look_with_whatever_can_be_called) {
  run([] {
    endpoint a, b;
    for (int i = 0; i < 3; ++i) a.send_value(b.id(), 1, i);
    b.receive_in_place(count_a_look);
    b.receive_in_place(&count_a_look);
    int last = 0;
    b.receive_in_place([&last, seen_by_itself = 0](const auto&, auto bytes) mutable {
      std::memcpy(&last, bytes.data(), sizeof(last));
      ++seen_by_itself;
    });
    EXPECT_EQ(last, 2);
  });
}

TEST(endpoint_looks, are_at_nothing_where_none_comes) {
  runtime rt(test::with_workers(1));
  rt.run([] {
    seen s;
    auto ends = std::make_unique<endpoint>();
    thread receiver([&] { EXPECT_THROW(ends->receive_in_place(s), endpoint_closed_error); });
    this_thread::yield();  // now it waits
    ends.reset();
    receiver.join();
    EXPECT_EQ(s.times, 0U);
  });
}

}  // namespace
