// SPDX-License-Identifier: Apache-2.0
// Connections over UDP that are made again: what is said by the new one arrives, and nothing of the
// one before. Who agrees on what, and when, is in tests/sim.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "net/renewals.hpp"
#include "transport_support.hpp"
#include "udp_support.hpp"

namespace strata::net::test {
namespace {

class asked final : public renewals::hands {
 public:
  void on_met(node_id, std::unique_ptr<renewal> made) override {
    if (begins_at_once) {
      EXPECT_TRUE(made->begin());
    } else {
      agreed = std::move(made);
    }
    ++meetings;
  }
  void on_not_met(node_id) override { ++failures; }

  bool begins_at_once = false;
  std::unique_ptr<renewal> agreed;
  unsigned meetings = 0, failures = 0;
};

// Nodes 0 and 1, of whom one thread takes care.
class udp_renewing : public testing::Test {
 protected:
  udp_renewing() {
    for (node_id n = 0; n < 2; ++n) all_[n]->tell(&told_[n]);
  }
  void run(const std::function<bool()>& until) {
    while (!until()) {
      for (node_id n = 0; n < 2; ++n) {
        (void)all_[n]->poll(*heard_[n], 64);
        all_[n]->wait_for_room(0);
      }
    }
  }
  // Whatever is under way is lost.
  void drop_both() {
    for (node_id n = 0; n < 2; ++n) {
      all_[n]->drop(static_cast<node_id>(1 - n));
      heard_[n] = std::make_unique<checking_receiver>(n);
    }
  }
  void meet() {
    const unsigned before[] = {told_[0].meetings, told_[1].meetings};
    all_[1]->ask(0);
    run([&] { return told_[0].meetings > before[0] && told_[1].meetings > before[1]; });
  }
  void begin_both() {
    for (asked& t : told_) EXPECT_TRUE(t.agreed->begin());
  }
  void say(node_id from, std::size_t messages) {
    const auto to = static_cast<node_id>(1 - from);
    for (std::size_t m = 0; m < messages; ++m) {
      while (all_[from]->try_send(to, header_of(from, to), content(from, m, mixed_size(m)), {}) ==
             send_outcome::would_block)
        run([] { return true; });
    }
  }
  void expect_talk(std::size_t messages) {
    for (const node_id n : {node_id{0}, node_id{1}}) say(n, messages);
    run([&] { return heard_[0]->total >= messages && heard_[1]->total >= messages; });
    for (const auto& r : heard_) {
      EXPECT_EQ(r->total, messages);
      EXPECT_TRUE(r->lost.empty());
    }
  }

  std::vector<std::unique_ptr<udp::udp_transport>> all_ = udp_nodes(2);
  asked told_[2];
  std::unique_ptr<checking_receiver> heard_[2] = {std::make_unique<checking_receiver>(0),
                                                  std::make_unique<checking_receiver>(1)};
};

TEST_F(udp_renewing, a_connection_begins_with_nothing_of_the_one_before) {
  for (int round = 0; round < 10; ++round) {
    // Of this some has come, some is in the sockets, some has not left, and nobody hears it.
    say(0, 20);
    say(1, 30);
    drop_both();
    EXPECT_EQ(all_[0]->try_send(1, header_of(0, 1), content(0, 0, 8), {}), send_outcome::lost);
    EXPECT_FALSE(all_[0]->reaches(1));
    meet();
    EXPECT_EQ(all_[0]->try_send(1, header_of(0, 1), content(0, 0, 8), {}), send_outcome::lost);
    begin_both();
    EXPECT_TRUE(all_[0]->reaches(1));
    expect_talk(50);
  }
  EXPECT_EQ(told_[0].meetings, 10U);
  EXPECT_EQ(told_[1].failures, 0U);
}

// What the first one says meanwhile waits for the other one.
TEST_F(udp_renewing, either_end_may_begin_first) {
  for (const int first : {0, 1}) {
    drop_both();
    meet();
    const auto from = static_cast<node_id>(first), to = static_cast<node_id>(1 - first);
    EXPECT_TRUE(told_[from].agreed->begin());
    say(from, 10);
    for (int i = 0; i < 100; ++i) run([] { return true; });
    EXPECT_EQ(heard_[to]->total, 0U);
    EXPECT_TRUE(told_[to].agreed->begin());
    run([&] { return heard_[to]->total == 10; });
  }
}

TEST_F(udp_renewing, may_begin_while_poll_tells_of_it) {
  for (asked& t : told_) t.begins_at_once = true;
  for (int round = 0; round < 3; ++round) {
    drop_both();
    meet();
    expect_talk(20);
  }
}

TEST_F(udp_renewing, who_does_without_is_lost_to_the_other) {
  drop_both();
  meet();
  EXPECT_TRUE(told_[1].agreed->begin());
  told_[0].agreed.reset();
  run([&] { return !heard_[1]->lost.empty(); });
  EXPECT_EQ(heard_[1]->lost[0][0], "has left");
  meet();
  begin_both();
  heard_[1] = std::make_unique<checking_receiver>(1);
  expect_talk(10);
}

// What was said of that first it could not hear.
TEST_F(udp_renewing, who_does_without_is_lost_to_who_begins_later) {
  for (const int first : {0, 1}) {
    drop_both();
    meet();
    const auto without = static_cast<node_id>(first), later = static_cast<node_id>(1 - first);
    const std::uint64_t refused = all_[later]->refused();
    told_[without].agreed.reset();
    run([&] { return all_[later]->refused() >= refused + 3; });
    EXPECT_TRUE(told_[later].agreed->begin());
    run([&] { return !heard_[later]->lost.empty(); });
    EXPECT_EQ(heard_[later]->lost[without][0], "has left");
  }
  drop_both();
  meet();
  begin_both();
  expect_talk(10);
}

TEST_F(udp_renewing, nobody_answers_for_ever_where_both_do_without) {
  drop_both();
  meet();
  std::uint64_t refused[2];
  for (node_id n = 0; n < 2; ++n) refused[n] = all_[n]->refused();
  for (asked& t : told_) t.agreed.reset();
  run([&] { return all_[0]->refused() >= refused[0] + 3 && all_[1]->refused() >= refused[1] + 3; });
  for (int i = 0; i < 100; ++i) run([] { return true; });
  for (node_id n = 0; n < 2; ++n) EXPECT_EQ(all_[n]->refused(), refused[n] + 3);
}

TEST_F(udp_renewing, the_newest_counts) {
  drop_both();
  meet();
  meet();
  begin_both();
  expect_talk(10);
}

// One that nobody has given up yet is replaced all the same, and nobody hears of its end.
TEST_F(udp_renewing, replaces_one_that_stands) {
  expect_talk(10);
  meet();
  begin_both();
  for (node_id n = 0; n < 2; ++n) heard_[n] = std::make_unique<checking_receiver>(n);
  expect_talk(10);
}

TEST_F(udp_renewing, nobody_answers_before_somebody_listens) {
  all_[0]->tell(nullptr);
  const std::uint64_t refused = all_[0]->refused(), writes = all_[0]->counted().writes;
  all_[1]->ask(0);
  run([&] { return all_[0]->refused() >= refused + 3; });
  EXPECT_EQ(all_[0]->counted().writes, writes);
  EXPECT_EQ(told_[1].meetings, 0U);
  all_[0]->tell(&told_[0]);
  run([&] { return told_[0].meetings == 1 && told_[1].meetings == 1; });
}

// Words about another connection change nothing of what the one that stands has to do.
TEST(udp_renewal, what_is_collected_goes_out_in_time_though_a_renewal_is_spoken_of) {
  auto all = udp_nodes(2, [](udp::settings& s) {
    s.burst_gap_ns = 30'000'000'000;
    s.flush_deadline_ns = 50'000'000;
  });
  asked told[2];
  checking_receiver heard[2] = {checking_receiver(0), checking_receiver(1, small_size)};
  for (node_id n = 0; n < 2; ++n) all[n]->tell(&told[n]);
  const auto poll_both = [&] {
    for (node_id n = 0; n < 2; ++n) (void)all[n]->poll(heard[n], 64);
  };
  std::size_t sent = 0;
  const auto send_ten = [&] {
    for (int i = 0; i < 10; ++i, ++sent)
      ASSERT_NE(all[0]->try_send(1, header_of(0, 1), content(0, sent, 64), {}), send_outcome::lost);
  };
  send_ten();
  (void)all[0]->flush(1);
  // Nothing is on its way any more.
  for (const std::int64_t end_ns = os::now_ns() + 5'000'000; os::now_ns() < end_ns;) poll_both();
  send_ten();
  all[1]->ask(0);
  while (told[0].meetings == 0 || told[1].meetings == 0) poll_both();
  // From now on node 0 computes.
  std::thread sender([&] { sleep_for_room(*all[0]); });
  heard[1].receive(*all[1], sent);
  all[0]->wake_sender();
  sender.join();
}

// By the threads of a node, of whom one sleeps in each wait.
TEST(udp_renewal, wakes_whoever_sleeps) {
  auto all = udp_nodes(2);
  const sender_thread first(*all[0], 2), second(*all[1], 2);
  asked told[2];
  std::atomic<unsigned> ended{0};
  std::vector<std::thread> receivers;
  for (node_id n = 0; n < 2; ++n) {
    told[n].begins_at_once = true;
    all[n]->tell(&told[n]);
    all[n]->drop(static_cast<node_id>(1 - n));
  }
  all[1]->ask(0);
  for (node_id n = 0; n < 2; ++n) {
    receivers.emplace_back([&, n] {
      checking_receiver r(n, small_size);
      r.receive_until(*all[n], [&] { return told[n].meetings == 1; });
      const auto to = static_cast<node_id>(1 - n);
      EXPECT_NE(all[n]->try_send(to, header_of(n, to), content(n, 0, 64), {}), send_outcome::lost);
      r.receive(*all[n], 1);
      // What is acknowledged only now may have to be said again to the other one.
      ended.fetch_add(1);
      while (ended.load() != 2) {
        (void)all[n]->poll(r, 64);
        std::this_thread::yield();
      }
    });
  }
  for (std::thread& t : receivers) t.join();
}

}  // namespace
}  // namespace strata::net::test
