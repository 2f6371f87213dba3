// SPDX-License-Identifier: Apache-2.0
#include "base/quicker_way.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <deque>

namespace strata {
namespace {

// A machine on which a byte costs so much either way.
struct machine {
  double first = 1, second = 2;

  static constexpr std::size_t lap_bytes = std::size_t{64} << 10, bytes = 4096;
  static constexpr unsigned lap = lap_bytes / bytes;
  // From one decision to the next but one, whatever it was.
  static constexpr unsigned trials = (2 * quicker_way::rest_longest + 4) * lap;

  // So many steps. Returns what they cost altogether.
  double go(quicker_way& c, unsigned count) const {
    double all = 0;
    for (unsigned i = 0; i < count; ++i) {
      const quicker_way::turn t = c.next(bytes);
      const double cost = bytes * (t.second ? second : first);
      if (t.timed) c.took(t, bytes, static_cast<std::uint64_t>(cost));
      all += cost;
    }
    return all;
  }
};

TEST(quicker_way, finds_the_faster_way) {
  quicker_way c(machine::lap_bytes);
  const machine near{.first = 1, .second = 2}, far{.first = 10, .second = 2};
  near.go(c, machine::trials);
  EXPECT_FALSE(c.is_second());
  far.go(c, machine::trials);
  EXPECT_TRUE(c.is_second());
  far.go(c, 2 * machine::trials);
  EXPECT_TRUE(c.is_second());
  near.go(c, machine::trials);
  EXPECT_FALSE(c.is_second());
}

// The first lap of the first way costs as much as the second way does, all later ones less.
TEST(quicker_way, judges_a_way_by_its_second_lap) {
  quicker_way c(machine::lap_bytes);
  machine{.first = 10, .second = 2}.go(c, machine::trials);
  ASSERT_TRUE(c.is_second());
  unsigned in_first = 0;  // in a row
  for (unsigned i = 0; i < machine::trials; ++i) {
    const quicker_way::turn t = c.next(machine::bytes);
    in_first = t.second ? 0 : in_first + 1;
    if (t.timed) c.took(t, machine::bytes, t.second || in_first <= machine::lap ? 2000U : 1000U);
  }
  EXPECT_FALSE(c.is_second());
}

TEST(quicker_way, costs_little_where_the_way_is_right) {
  quicker_way c(machine::lap_bytes);
  const machine near{.first = 1, .second = 3};
  near.go(c, machine::trials);
  EXPECT_LT(near.go(c, 10 * machine::trials), 1.05 * 10 * machine::trials * machine::bytes);
}

// It is seldom tried, and not for a whole lap where that would cost much.
TEST(quicker_way, costs_little_however_much_slower_the_other_way_is) {
  for (const double times : {4., 7.5, 8.5, 30.}) {
    quicker_way c(machine::lap_bytes);
    const machine near{.first = 1, .second = times};
    near.go(c, machine::trials);
    EXPECT_LT(near.go(c, 10 * machine::trials), 1.08 * 10 * machine::trials * machine::bytes)
        << times;
    EXPECT_FALSE(c.is_second());
    machine{.first = 1, .second = .5}.go(c, machine::trials);
    EXPECT_TRUE(c.is_second()) << "no longer slower";
  }
}

// Four steps of nine lose their core meanwhile: neither way looks worse for that than it is.
TEST(quicker_way, believes_no_single_step) {
  for (const bool second_is_faster : {false, true}) {
    for (const bool hits_second : {false, true}) {
      quicker_way c(machine::lap_bytes);
      unsigned timed = 0;
      for (unsigned i = 0; i < 4 * machine::lap; ++i) {
        const quicker_way::turn t = c.next(machine::bytes);
        if (!t.timed) continue;
        const bool is_hit = t.second == hits_second && timed++ % 9 < 4;
        c.took(t, 4096, is_hit ? 1'000'000U : t.second == second_is_faster ? 1000U : 2000U);
      }
      EXPECT_EQ(c.is_second(), second_is_faster) << hits_second;
    }
  }
}

TEST(quicker_way, changes_nothing_for_what_is_hardly_better) {
  quicker_way c(machine::lap_bytes);
  machine{.first = 1, .second = .95}.go(c, 3 * machine::trials);
  EXPECT_FALSE(c.is_second());
}

// Several steps are under way at a time, and some never end.
TEST(quicker_way, may_be_told_later) {
  for (const bool second_is_faster : {false, true}) {
    quicker_way c(machine::lap_bytes);
    std::deque<quicker_way::turn> under_way;
    for (unsigned i = 0; i < 2 * machine::trials; ++i) {
      under_way.push_back(c.next(machine::bytes));
      if (under_way.size() < 20) continue;
      const quicker_way::turn t = under_way.front();
      under_way.pop_front();
      const bool ends = i % 7 != 0;
      if (t.timed && ends) c.took(t, machine::bytes, t.second == second_is_faster ? 1000U : 2000U);
    }
    EXPECT_EQ(c.is_second(), second_is_faster);
  }
}

}  // namespace
}  // namespace strata
