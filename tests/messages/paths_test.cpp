// SPDX-License-Identifier: Apache-2.0
// Which path a message took within its process, and how often it was copied, as the statistics
// tell.
#include <gtest/gtest.h>

#include <vector>

#include "../sched/support.hpp"
#include "strata/message.hpp"
#include "strata/stats.hpp"

namespace {

using namespace strata;
using test::with_workers;

class message_paths : public testing::Test {
 protected:
  // What the counters gain while f runs with two endpoints, from the first to the second.
  template <class F>
  message_statistics gained(F&& f) {
    const message_statistics before = rt_.stats().messages;
    rt_.run([&] {
      endpoint a, b;
      f(a, b);
    });
    const message_statistics after = rt_.stats().messages;
    return {.handed_over = after.handed_over - before.handed_over,
            .copied_once = after.copied_once - before.copied_once,
            .copied_twice = after.copied_twice - before.copied_twice,
            .sent_whole = after.sent_whole,
            .helped = after.helped,
            .read = after.read,
            .moved = after.moved,
            .pulled = after.pulled,
            .bytes_copied = after.bytes_copied - before.bytes_copied};
  }
  static void expect_one(const message_statistics& m, std::uint64_t message_statistics::*path,
                         std::uint64_t bytes_copied) {
    message_statistics wanted;
    wanted.*path = 1;
    EXPECT_EQ(m.handed_over, wanted.handed_over);
    EXPECT_EQ(m.copied_once, wanted.copied_once);
    EXPECT_EQ(m.copied_twice, wanted.copied_twice);
    EXPECT_EQ(m.bytes_copied, bytes_copied);
    EXPECT_EQ(m.sent_whole + m.helped + m.read + m.moved + m.pulled, 0U);
  }

  runtime rt_{with_workers(1)};
};

TEST_F(message_paths, of_a_vector_that_is_handed_over) {
  for (const std::size_t bytes : {std::size_t{10}, std::size_t{4} << 20}) {
    expect_one(gained([&](endpoint& a, endpoint& b) {
                 a.send(b.id(), 1, std::vector<std::byte>(bytes));
                 EXPECT_EQ(b.receive_message().bytes, bytes);
               }),
               &message_statistics::handed_over, 0);
  }
}

TEST_F(message_paths, of_a_vector_that_is_received_into_a_buffer) {
  expect_one(gained([](endpoint& a, endpoint& b) {
               std::vector<std::byte> buffer(5000);
               a.send(b.id(), 1, std::vector<std::byte>(5000));
               b.receive(buffer);
             }),
             &message_statistics::copied_once, 5000);
}

TEST_F(message_paths, of_bytes_that_are_awaited) {
  for (const std::size_t bytes : {std::size_t{10}, std::size_t{4} << 20}) {
    const std::vector<std::byte> out(bytes);
    std::vector<std::byte> in(bytes);
    expect_one(gained([&](endpoint& a, endpoint& b) {
                 transfer receives = b.start_receive(in);
                 a.send(b.id(), 1, out);
                 EXPECT_EQ(receives.wait().bytes, bytes);
               }),
               &message_statistics::copied_once, bytes);
  }
}

TEST_F(message_paths, of_bytes_that_are_kept_until_they_are_received) {
  // The few of the first are kept otherwise than those of the second.
  for (const std::size_t bytes : {std::size_t{10}, std::size_t{1000}}) {
    const std::vector<std::byte> out(bytes);
    std::vector<std::byte> in(bytes);
    expect_one(gained([&](endpoint& a, endpoint& b) {
                 a.send(b.id(), 1, out);
                 EXPECT_EQ(b.receive(in).bytes, bytes);
               }),
               &message_statistics::copied_twice, 2 * bytes);
  }
  // The copy that was kept is what the receiver gets.
  const std::vector<std::byte> out(1000);
  expect_one(gained([&](endpoint& a, endpoint& b) {
               a.send(b.id(), 1, out);
               EXPECT_EQ(b.receive_message().bytes, 1000U);
             }),
             &message_statistics::copied_once, 1000);
}

TEST_F(message_paths, of_bytes_that_wait_with_their_sender) {
  const std::vector<std::byte> out(std::size_t{4} << 20);
  std::vector<std::byte> in(out.size());
  expect_one(gained([&](endpoint& a, endpoint& b) {
               transfer sends = a.start_send(b.id(), 1, out);
               EXPECT_EQ(b.receive(in).bytes, out.size());
               sends.wait();
             }),
             &message_statistics::copied_once, out.size());
}

TEST_F(message_paths, in_one_process_are_no_transports) {
  (void)gained([](endpoint& a, endpoint& b) {
    a.send_value(b.id(), 1, 5);
    EXPECT_EQ(b.receive_value<int>(), 5);
  });
  const statistics s = rt_.stats();
  EXPECT_TRUE(s.transports.empty());
  EXPECT_EQ(s.forwarded, 0U);
}

}  // namespace
