// SPDX-License-Identifier: Apache-2.0
#include "cluster/engine/departures.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace strata::cluster {
namespace {

using known = departures::known;
using cause = departures::cause;

TEST(departures, are_news_once) {
  departures d(3);
  EXPECT_FALSE(d.has_gone(1));
  EXPECT_TRUE(d.add(1));
  EXPECT_FALSE(d.add(1));
  EXPECT_TRUE(d.has_gone(1));
  EXPECT_FALSE(d.has_gone(2));
}

TEST(departures, node_0_says_no_goodbye_and_is_not_waited_for) {
  departures d(3);
  d.add(2);
  EXPECT_TRUE(d.is([](const known& k) { return k.have_gone({0, 2}); }));
  EXPECT_FALSE(d.is([](const known& k) { return k.have_gone({0, 1, 2}); }));
}

TEST(departures, the_first_cause_of_the_end_counts) {
  departures d(1);
  d.end(cause::stopped);
  d.end(cause::lost);
  EXPECT_TRUE(d.is([](const known& k) { return k.own == cause::stopped; }));
}

TEST(departures, a_wait_that_ends_by_its_limit_says_so) {
  departures d(1);
  EXPECT_FALSE(d.wait_for(std::chrono::milliseconds(1),
                          [](const known& k) { return k.own != cause::none; }));
}

// Once the condition has been looked at, and its wait sleeps, only `change` can end it.
template <class Condition, class Change>
void expect_woken(departures& d, Condition is_so, Change change) {
  std::atomic<bool> looked{false};
  std::thread waits([&] {
    d.wait([&](const known& k) {
      const bool so = is_so(k);
      looked = true;
      looked.notify_one();
      return so;
    });
  });
  looked.wait(false);
  change();
  waits.join();
}

TEST(departures, wake_who_waits_for_them) {
  departures d(2);
  expect_woken(
      d, [](const known& k) { return k.gone[1]; }, [&] { d.add(1); });
  expect_woken(
      d, [](const known& k) { return k.told_lost.contains(1); }, [&] { d.launcher_tells_of(1); });
  expect_woken(
      d, [](const known& k) { return k.own == cause::left; }, [&] { d.end(cause::left); });
  std::atomic<bool> elsewhere{false};
  expect_woken(
      d, [&](const known&) { return elsewhere.load(); },
      [&] {
        elsewhere = true;
        d.look_again();
      });
}

}  // namespace
}  // namespace strata::cluster
