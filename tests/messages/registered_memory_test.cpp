// SPDX-License-Identifier: Apache-2.0
// Registered memory where no network wants any: messages are as they are without, and objects may
// be made, moved and ended as they like. (With networks: jobs_test.cpp, net/ucx_registration_test.)
#include "strata/registered_memory.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "../sched/support.hpp"
#include "strata/error.hpp"
#include "strata/message.hpp"
#include "strata/thread.hpp"

namespace {

using namespace strata;
using test::with_workers;

static_assert(!std::is_copy_constructible_v<registered_memory>);
static_assert(std::is_nothrow_move_constructible_v<registered_memory>);
static_assert(std::is_nothrow_move_assignable_v<registered_memory>);
static_assert(!std::is_constructible_v<registered_memory, std::vector<int>>,
              "it ends with the call");
static_assert(!std::is_constructible_v<registered_memory, const std::vector<int>&>);
static_assert(!std::is_convertible_v<std::vector<int>&, registered_memory>);

TEST(registered_memory, of_a_runtime_without_networks_changes_nothing) {
  runtime rt(with_workers(2));
  rt.run([] {
    std::vector<int> from(1'000'000, 7);
    std::vector<int> into(from.size());
    const registered_memory source(from);
    const registered_memory target(into);
    EXPECT_EQ(source.bytes().data(), reinterpret_cast<std::byte*>(from.data()));
    EXPECT_EQ(source.bytes().size(), from.size() * sizeof(int));
    endpoint a, b;
    thread receives([&] { b.receive(into); });
    transfer sends = a.start_send(b.id(), 1, from);
    receives.join();
    sends.wait();
    EXPECT_EQ(into, from);
    EXPECT_EQ(source.networks() + target.networks(), 0U);
    EXPECT_EQ(source.uses() + target.uses(), 0U);
  });
}

TEST(registered_memory, is_empty_when_it_has_been_moved) {
  runtime rt(with_workers(1));
  rt.run([] {
    std::array<char, 100> first{};
    std::array<char, 50> second{};
    registered_memory a(first);
    registered_memory b(std::move(a));
    EXPECT_TRUE(a.bytes().empty());  // NOLINT(bugprone-use-after-move)
    EXPECT_EQ(a.networks() + a.uses(), 0U);
    EXPECT_EQ(b.bytes().size(), 100U);
    registered_memory c(second);
    b = std::move(c);
    EXPECT_TRUE(c.bytes().empty());  // NOLINT(bugprone-use-after-move)
    EXPECT_EQ(b.bytes().data(), reinterpret_cast<std::byte*>(second.data()));
    registered_memory& itself = b;
    b = std::move(itself);
    EXPECT_EQ(b.bytes().size(), 50U);
    a = std::move(b);
    EXPECT_EQ(a.bytes().size(), 50U);
    b = registered_memory();
    EXPECT_TRUE(b.bytes().empty());
  });
}

TEST(registered_memory, may_be_of_nothing) {
  runtime rt(with_workers(1));
  rt.run([] {
    const registered_memory none{std::span<std::byte>()};
    EXPECT_TRUE(none.bytes().empty());
    EXPECT_EQ(none.networks() + none.uses(), 0U);
  });
}

TEST(registered_memory, needs_a_runtime_to_be_made_but_not_to_end) {
  std::array<std::byte, 10> bytes{};
  EXPECT_THROW(registered_memory{bytes}, misuse_error);
  registered_memory kept;
  {
    runtime rt(with_workers(1));
    EXPECT_THROW(registered_memory{bytes}, misuse_error);
    rt.run([&] { kept = registered_memory(bytes); });
  }
  EXPECT_EQ(kept.bytes().size(), bytes.size());
}

}  // namespace
