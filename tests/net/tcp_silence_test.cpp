// SPDX-License-Identifier: Apache-2.0
// A silence is one only while somebody listens.
#include <gtest/gtest.h>

#include <cstdint>

#include "net/tcp/silence.hpp"

namespace strata::net::tcp {
namespace {

constexpr std::int64_t ms = 1'000'000, limit_ns = 1'000 * ms, beat_ns = limit_ns / 10;
constexpr silence::state repeats{true, 2 * limit_ns}, answered{false, 0};

// Looks at every beat until then; the time at which it has lasted, or 0.
std::int64_t look(silence& s, const silence::state& there, std::int64_t from_ns,
                  std::int64_t until_ns) {
  for (std::int64_t now_ns = from_ns; now_ns <= until_ns; now_ns += beat_ns) {
    if (s.lasts(there, now_ns, limit_ns)) return now_ns;
  }
  return 0;
}

TEST(tcp_silence, lasts_from_the_first_look_that_finds_it) {
  silence s;
  EXPECT_EQ(look(s, answered, 0, limit_ns), 0);
  const std::int64_t began_ns = limit_ns + beat_ns;
  EXPECT_EQ(look(s, repeats, began_ns, 9 * limit_ns), began_ns + limit_ns);
}

TEST(tcp_silence, ends_with_an_answer) {
  silence s;
  EXPECT_EQ(look(s, repeats, 0, limit_ns - beat_ns), 0);
  EXPECT_FALSE(s.lasts(answered, limit_ns, limit_ns));
  EXPECT_EQ(look(s, repeats, limit_ns + beat_ns, 2 * limit_ns), 0);
}

// As by SIGSTOP: what the kernel repeated meanwhile may have been for others who were stopped too.
TEST(tcp_silence, does_not_count_while_nobody_looks) {
  silence s;
  EXPECT_EQ(look(s, repeats, 0, limit_ns / 2), 0);
  const std::int64_t goes_on_ns = 9 * limit_ns;
  EXPECT_EQ(look(s, repeats, goes_on_ns, 20 * limit_ns), goes_on_ns + limit_ns);
}

TEST(tcp_silence, of_one_connection_says_nothing_of_the_next) {
  silence s;
  EXPECT_EQ(look(s, repeats, 0, limit_ns - beat_ns), 0);
  s.restart();
  EXPECT_EQ(look(s, repeats, limit_ns, 9 * limit_ns), 2 * limit_ns);
}

}  // namespace
}  // namespace strata::net::tcp
