// SPDX-License-Identifier: Apache-2.0
// What transports promise whose nodes only need each other's addresses (net/addressed.hpp), as
// tests. A test program names how they are made, before they are connected:
//
//   INSTANTIATE_TEST_SUITE_P(udp, addressed_suite, testing::Values(addressed_maker{...}));
#pragma once
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "net/addressed.hpp"
#include "os/descriptor.hpp"
#include "strata/error.hpp"
#include "transport_support.hpp"

namespace strata::net::test {

struct addressed_maker {
  std::string name;
  std::function<std::unique_ptr<addressed_transport>(node_id self, node_id nodes)> make;
};

class addressed_suite : public testing::TestWithParam<addressed_maker> {
 protected:
  static constexpr node_id numbers = 5;
  static constexpr node_id comer = 3;  // those below are there from the beginning, but for node 1
  static constexpr std::array<node_id, 2> members{0, 2};

  addressed_suite() : directory_(numbers) {
    for (const node_id n : members) open(n);
    std::vector<std::thread> threads;
    for (const node_id n : members) threads.emplace_back([this, n] { connect(n); });
    for (std::thread& t : threads) t.join();
  }
  void open(node_id n) {
    all_[n] = GetParam().make(n, numbers);
    directory_[n] = all_[n]->address();
  }
  void connect(node_id n) { all_[n]->connect(directory_, os::now_ns() + too_long_ns); }
  void let_in() {
    open(comer);
    for (const node_id n : members) all_[n]->admit(comer, directory_[comer]);
    connect(comer);
  }
  // The same, where nobody else looks at the members' messages.
  void let_in_and_attend() {
    std::atomic<bool> joined{false};
    std::thread comes([&] {
      let_in();
      joined.store(true);
    });
    while (!joined.load()) {
      for (const node_id n : members) {
        checking_receiver nothing(n);
        EXPECT_EQ(all_[n]->poll(nothing, 64), 0u);
      }
      std::this_thread::yield();
    }
    comes.join();
  }

  std::vector<launch::address> directory_;
  std::array<std::unique_ptr<addressed_transport>, numbers> all_;
};

TEST_P(addressed_suite, nobody_is_there_before_he_comes) {
  addressed_transport& t = *all_[0];
  EXPECT_TRUE(t.reaches(2));
  for (const node_id n : std::array<node_id, 4>{0, 1, comer, numbers}) {
    EXPECT_FALSE(t.reaches(n));
    EXPECT_EQ(t.try_send(n, header_of(0, n), content(0, 0, 64), {}), send_outcome::lost);
    EXPECT_TRUE(t.flush(n));
    t.drop(n);
  }
  EXPECT_EQ(t.counted().messages_out, 0u);
  let_in_and_attend();
  EXPECT_TRUE(t.reaches(comer));
  EXPECT_TRUE(all_[comer]->reaches(0));
  EXPECT_FALSE(all_[comer]->reaches(1));
}

TEST_P(addressed_suite, a_node_comes_while_others_talk) {
  constexpr std::size_t among_members = 3000;
  constexpr std::size_t with_comer = 300;
  std::atomic<std::size_t> heard{0};
  std::atomic<bool> is_in{false};
  std::vector<std::thread> senders, receivers;
  senders_stay stay;
  for (const node_id self : members) {
    const auto other = static_cast<node_id>(2 - self);
    transport& t = *all_[self];
    senders.emplace_back([&, self, other] {
      std::size_t told = 0;
      for (std::size_t m = 0; m < among_members; ++m) {
        send_patiently(t, self, other, content(self, m, mixed_size(m)));
        // From the moment on in which it is let in, before it knows.
        if (!t.reaches(comer) || told == with_comer) continue;
        send_patiently(t, self, comer, content(self, told, mixed_size(told)));
        ++told;
      }
      is_in.wait(false);
      for (; told < with_comer; ++told)
        send_patiently(t, self, comer, content(self, told, mixed_size(told)));
      flush_patiently(t, other);
      flush_patiently(t, comer);
      stay.until_over(t);
    });
    receivers.emplace_back([&, self] {
      checking_receiver r(self);
      r.receive_until(t, [&] {
        heard.store(r.total);
        heard.notify_all();
        return r.total >= among_members + with_comer;
      });
      EXPECT_TRUE(r.lost.empty());
      EXPECT_EQ(r.received[comer], with_comer);
    });
  }
  heard.wait(0);
  let_in();
  is_in.store(true);
  is_in.notify_all();
  senders.emplace_back([&] {
    for (std::size_t m = 0; m < with_comer; ++m) {
      for (const node_id n : members)
        send_patiently(*all_[comer], comer, n, content(comer, m, mixed_size(m)));
    }
    for (const node_id n : members) flush_patiently(*all_[comer], n);
    stay.until_over(*all_[comer]);
  });
  checking_receiver r(comer);
  r.receive(*all_[comer], 2 * with_comer);
  EXPECT_TRUE(r.lost.empty());
  for (std::thread& t : receivers) t.join();
  for (const node_id n : {members[0], members[1], node_id{comer}}) stay.over(*all_[n]);
  for (std::thread& t : senders) t.join();
}

TEST_P(addressed_suite, who_came_may_go) {
  let_in_and_attend();
  send_patiently(*all_[comer], comer, 0, content(comer, 0, 64));
  flush_patiently(*all_[comer], 0);
  checking_receiver r(0, small_size);
  r.receive(*all_[0], 1);
  all_[comer].reset();
  r.receive_until(*all_[0], [&] { return !r.lost.empty(); });
  EXPECT_EQ(r.lost[comer].size(), 1u);
  EXPECT_EQ(all_[0]->try_send(comer, header_of(0, comer), {}, {}), send_outcome::lost);
  send_patiently(*all_[2], 2, 0, content(2, 0, 64));
  flush_patiently(*all_[2], 0);
  r.receive(*all_[0], 2);
}

TEST_P(addressed_suite, who_never_connects_holds_nobody_up) {
  open(comer);
  all_[0]->admit(comer, directory_[comer]);
  all_[comer].reset();
  all_[0]->drop(comer);
  EXPECT_EQ(all_[0]->try_send(comer, header_of(0, comer), {}, {}), send_outcome::lost);
  send_patiently(*all_[2], 2, 0, content(2, 0, 64));
  flush_patiently(*all_[2], 0);
  checking_receiver r(0, small_size);
  r.receive(*all_[0], 1);
  EXPECT_TRUE(r.lost.empty());
}

TEST_P(addressed_suite, who_is_lost_while_others_are_waited_for_came_all_the_same) {
  constexpr node_id waits = 1, goes = 3, late = 4;
  for (const node_id n : {waits, goes, late}) open(n);
  const auto connect_to = [&](node_id self, std::vector<node_id> others) {
    std::vector<launch::address> some(numbers);
    for (const node_id n : others) some[n] = directory_[n];
    all_[self]->connect(some, os::now_ns() + too_long_ns);
  };
  bool has_joined = false;
  std::thread waiting([&] {
    try {
      connect_to(waits, {goes, late});
      has_joined = true;
    } catch (const strata::error& e) {
      ADD_FAILURE() << e.what();
    }
  });
  connect_to(goes, {waits});
  all_[goes].reset();
  connect_to(late, {waits});
  waiting.join();
  ASSERT_TRUE(has_joined);
  checking_receiver r(waits, small_size);
  r.receive_until(*all_[waits], [&] { return !r.lost.empty(); });
  EXPECT_EQ(r.lost[goes].size(), 1u);
  send_patiently(*all_[late], late, waits, content(late, 0, 64));
  flush_patiently(*all_[late], waits);
  r.receive(*all_[waits], 1);
}

// As a launcher tells of a node whose process has ended.
TEST_P(addressed_suite, what_is_heard_while_others_are_waited_for_ends_the_waiting) {
  constexpr node_id waits = 1, silent = 4;
  for (const node_id n : {waits, silent}) open(n);
  std::vector<launch::address> some(numbers);
  some[silent] = directory_[silent];
  const os::descriptor word(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  std::atomic<bool> has_looked{false};
  std::thread tells([&] {
    while (!has_looked.load()) std::this_thread::yield();
    const std::uint64_t one = 1;
    EXPECT_EQ(::write(word.get(), &one, sizeof one), ssize_t{sizeof one});
  });
  const tidings hears{word.get(), [&] {
                        has_looked.store(true);
                        std::uint64_t count = 0;
                        if (::read(word.get(), &count, sizeof count) == ssize_t{sizeof count})
                          throw node_lost_error(silent, "it has ended");
                      }};
  EXPECT_THROW(all_[waits]->connect(some, os::now_ns() + too_long_ns, hears), node_lost_error);
  tells.join();
}

TEST_P(addressed_suite, who_does_not_come_is_dropped_where_the_job_can_do_without) {
  constexpr node_id one = 1, silent = 3, other = 4;
  // All of it is waited for in vain. A machine that needs longer for the others gets longer.
  for (std::int64_t patience_ns = 250'000'000;; patience_ns *= 2) {
    for (const node_id n : {one, silent, other}) open(n);
    std::vector<launch::address> some(numbers);
    for (const node_id n : {one, silent, other}) some[n] = directory_[n];
    const std::int64_t deadline_ns = os::now_ns() + patience_ns;
    std::thread there([&] { all_[other]->connect_where_possible(some, deadline_ns); });
    all_[one]->connect_where_possible(some, deadline_ns);
    there.join();
    if (all_[one]->reaches(other) && all_[other]->reaches(one)) break;
    ASSERT_LT(patience_ns, too_long_ns);
  }
  for (const node_id n : {one, other}) {
    EXPECT_FALSE(all_[n]->reaches(silent));
    EXPECT_EQ(all_[n]->try_send(silent, header_of(n, silent), {}, {}), send_outcome::lost);
    EXPECT_FALSE(all_[n]->reaches(0));
  }
  send_patiently(*all_[one], one, other, content(one, 0, 64));
  flush_patiently(*all_[one], other);
  checking_receiver r(other, small_size);
  r.receive(*all_[other], 1);
  EXPECT_TRUE(r.lost.empty());
}

// Afterwards nobody looks at what comes, and the other one must have got what it waits for.
TEST_P(addressed_suite, who_has_joined_where_possible_has_been_heard) {
  constexpr node_id one = 1, other = 4;
  for (int round = 0; round < 10; ++round) {
    for (const node_id n : {one, other}) open(n);
    std::vector<launch::address> both(numbers);
    for (const node_id n : {one, other}) both[n] = directory_[n];
    const std::int64_t deadline_ns = os::now_ns() + too_long_ns;
    std::thread there([&] { all_[other]->connect_where_possible(both, deadline_ns); });
    all_[one]->connect_where_possible(both, deadline_ns);
    there.join();
    ASSERT_TRUE(all_[one]->reaches(other));
    ASSERT_TRUE(all_[other]->reaches(one));
    ASSERT_LT(os::now_ns(), deadline_ns);
  }
}

TEST_P(addressed_suite, what_is_no_address_is_refused) {
  EXPECT_THROW(all_[0]->admit(comer, {"127.0.0.1", 1, {}}), strata::error);
  EXPECT_FALSE(all_[0]->reaches(comer));
  let_in_and_attend();
}

}  // namespace strata::net::test
