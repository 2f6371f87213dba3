// SPDX-License-Identifier: Apache-2.0
// Endpoints and transfers whose runtime has ended.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "../common/thread_asleep.hpp"
#include "../sched/support.hpp"
#include "strata/message.hpp"

namespace strata {
namespace {

using test::sleeps;
using test::spin_until;
using test::with_workers;

// Ended by whoever has it last, whatever is still in progress there.
TEST(endpoint, may_outlive_its_runtime) {
  std::optional<endpoint> a, b;
  transfer receives, kept_send, waiting_send;
  const std::vector<std::byte> large(std::size_t{1} << 20);
  const std::string kept = "kept";
  int value = 0;
  {
    runtime rt(with_workers(2));
    rt.run([&] {
      a.emplace();
      b.emplace();
      receives = b->start_receive(std::as_writable_bytes(std::span(&value, 1)), b->id());
      kept_send = a->start_send(b->id(), 1, std::as_bytes(std::span(kept)));
      waiting_send = a->start_send(b->id(), 2, large);
    });
  }
  EXPECT_THROW(a->send_value(b->id(), 1, 5), misuse_error);
  EXPECT_THROW((void)a->start_send(b->id(), 1, large).wait(), misuse_error);
  EXPECT_THROW((void)a->receive_message(), misuse_error);
  EXPECT_THROW((void)a->probe(), misuse_error);
  EXPECT_EQ(kept_send.wait().bytes, 4U);
  EXPECT_TRUE(receives.test());
  EXPECT_FALSE(receives.cancel());
  EXPECT_THROW(receives.wait(), misuse_error);
  endpoint moved(*std::move(a));
  a.reset();
  b.reset();
  // And a transfer all its endpoints.
  { const endpoint last(std::move(moved)); }
  EXPECT_FALSE(waiting_send.cancel());
  EXPECT_THROW(waiting_send.wait(), misuse_error);
}

TEST(endpoint, may_end_before_its_transfers_and_its_runtime) {
  transfer receives;
  int value = 0;
  {
    runtime rt(with_workers(1));
    rt.run([&] {
      endpoint a;
      receives = a.start_receive(std::as_writable_bytes(std::span(&value, 1)));
    });
  }
  EXPECT_FALSE(receives.cancel());
  EXPECT_THROW(receives.wait(), endpoint_closed_error);
}

// An OS thread goes on after the runtime, unlike those of it, and hears that.
void end_while_one_waits(const std::function<void(endpoint&)>& wait) {
  std::optional<endpoint> e;
  std::optional<runtime> rt(with_workers(1));
  rt->run([&] { e.emplace(); });
  std::atomic<pid_t> waiter{0};
  std::thread outside([&] {
    waiter = gettid();
    EXPECT_THROW(wait(*e), misuse_error);
  });
  spin_until([&] { return waiter != 0 && sleeps(waiter); });
  rt.reset();
  outside.join();
}

TEST(endpoint, of_a_runtime_that_ends_is_not_waited_for_outside) {
  static constexpr auto bytes = [] { return std::array<std::byte, 8>(); };
  end_while_one_waits([](endpoint& e) {
    auto into = bytes();
    (void)e.receive(into);
  });
  end_while_one_waits([](endpoint& e) {
    auto into = bytes();
    (void)e.start_receive(into).wait();
  });
  end_while_one_waits([](endpoint& e) {
    std::array<std::array<std::byte, 8>, 2> into{};
    std::array<transfer, 2> both{e.start_receive(into[0]), e.start_receive(into[1])};
    (void)both[wait_any(both)].wait();
  });
}

}  // namespace
}  // namespace strata
