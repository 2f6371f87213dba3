// SPDX-License-Identifier: Apache-2.0
// A turn at a descriptor is handed over by who has it, and by nobody else.
#include "threads/turns.hpp"

#include <unistd.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "../common/thread_states.hpp"
#include "../sched/support.hpp"
#include "strata/thread.hpp"

namespace strata::test {
namespace {

using detail::descriptor_turn;
using detail::parking;
using detail::unparked;

// What becomes a turn's memory may have been an object that somebody is about to wake others at.
TEST(descriptor_turns, are_not_handed_over_by_who_wakes_late_at_their_address) {
  runtime rt(with_workers(1));
  rt.run([] {
    std::array<int, 2> ends{-1, -1};
    ASSERT_EQ(pipe(ends.data()), 0);
    auto first = std::make_optional<descriptor_turn>(ends[0], false);
    ASSERT_EQ(first->take(parking::never), unparked::woken);
    bool has_it = false;
    thread second({.name = "second"}, [&] {
      descriptor_turn mine(ends[0], false);
      EXPECT_EQ(mine.take(parking::never), unparked::woken);
      has_it = true;
    });
    const std::string waits = "waiting for file descriptor at ";
    const std::string text = paragraph(text_when("second", waits), "second");
    const auto at = std::stoull(text.substr(text.find(waits) + waits.size()), nullptr, 16);
    const auto of_an_object = static_cast<std::uintptr_t>(at) & ~std::uintptr_t{7};
    detail::unpark(reinterpret_cast<const void*>(of_an_object), UINT32_MAX);
    for (int i = 0; i < 10; ++i) this_thread::yield();
    EXPECT_FALSE(has_it);
    first.reset();
    second.join();
    EXPECT_TRUE(has_it);
    for (const int fd : ends) close(fd);
  });
}

// What interrupts the one who waits with the turn may want the same: it is ahead of all others.
TEST(descriptor_turns, are_a_threads_own_within_its_wait) {
  runtime rt(with_workers(1));
  rt.run([] {
    std::array<int, 2> ends{-1, -1};
    ASSERT_EQ(pipe(ends.data()), 0);
    auto first = std::make_optional<descriptor_turn>(ends[0], false);
    ASSERT_EQ(first->take(parking::never), unparked::woken);
    bool has_it = false;
    thread second([&] {
      descriptor_turn mine(ends[0], false);
      EXPECT_FALSE(mine.try_take());
      EXPECT_EQ(mine.take(parking::never), unparked::woken);
      has_it = true;
    });
    {
      descriptor_turn within(ends[0], false);
      EXPECT_EQ(within.take(0), unparked::woken);
      descriptor_turn further(ends[0], false);
      EXPECT_TRUE(further.try_take());
    }
    for (int i = 0; i < 10; ++i) this_thread::yield();
    EXPECT_FALSE(has_it);
    first.reset();
    second.join();
    EXPECT_TRUE(has_it);
    for (const int fd : ends) close(fd);
  });
}

}  // namespace
}  // namespace strata::test
