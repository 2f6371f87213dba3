// SPDX-License-Identifier: Apache-2.0
// A turn at a descriptor is handed over by who has it, and by nobody else.
#include "threads/turns.hpp"

#include <unistd.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "../common/require.hpp"
#include "../common/thread_states.hpp"
#include "../sched/support.hpp"
#include "strata/thread.hpp"

namespace strata::test {
namespace {

using detail::descriptor_turn;
using detail::parking;
using detail::unparked;

// Somebody's, at a descriptor of its own.
class taken_turn {
 public:
  taken_turn() {
    require(pipe(ends_.data()) == 0, "a pipe");
    turn_.emplace(fd(), false);
    EXPECT_EQ(turn_->take(parking::never), unparked::woken);
  }
  ~taken_turn() {
    for (const int end : ends_) close(end);
  }
  taken_turn(const taken_turn&) = delete;
  taken_turn& operator=(const taken_turn&) = delete;
  [[nodiscard]] int fd() const noexcept { return ends_[0]; }
  void hand_over() { turn_.reset(); }

 private:
  std::array<int, 2> ends_{-1, -1};
  std::optional<descriptor_turn> turn_;
};

// What becomes a turn's memory may have been an object that somebody is about to wake others at.
TEST(descriptor_turns, are_not_handed_over_by_who_wakes_late_at_their_address) {
  runtime rt(with_workers(1));
  rt.run([] {
    taken_turn first;
    bool has_it = false;
    thread second({.name = "second"}, [&] {
      descriptor_turn mine(first.fd(), false);
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
    first.hand_over();
    second.join();
    EXPECT_TRUE(has_it);
  });
}

// What interrupts the one who waits with the turn may want the same: it is ahead of all others.
TEST(descriptor_turns, are_a_threads_own_within_its_wait) {
  runtime rt(with_workers(1));
  rt.run([] {
    taken_turn first;
    bool has_it = false;
    thread second([&] {
      descriptor_turn mine(first.fd(), false);
      EXPECT_FALSE(mine.try_take());
      EXPECT_EQ(mine.take(parking::never), unparked::woken);
      has_it = true;
    });
    {
      descriptor_turn within(first.fd(), false);
      EXPECT_EQ(within.take(0), unparked::woken);
      descriptor_turn further(first.fd(), false);
      EXPECT_TRUE(further.try_take());
    }
    for (int i = 0; i < 10; ++i) this_thread::yield();
    EXPECT_FALSE(has_it);
    first.hand_over();
    second.join();
    EXPECT_TRUE(has_it);
  });
}

}  // namespace
}  // namespace strata::test
