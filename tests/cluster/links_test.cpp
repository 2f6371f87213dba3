// SPDX-License-Identifier: Apache-2.0
// A gateway whose next neighbour takes nothing for a while: what waits is bounded by telling its
// source, and goes on in order.
#include "cluster/links/links.hpp"

#include <gtest/gtest.h>

#include <condition_variable>
#include <cstring>
#include <mutex>
#include <new>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "cluster/links/forwarding.hpp"
#include "nodes_in_a_row.hpp"

namespace strata::cluster {
namespace {

void hold(links& l, node_id gateway, const held_head& word) {
  l.hold(gateway, reader(std::as_bytes(std::span(&word, 1))));
}

// To nodes 0 and 2; to 2 only while it is open.
class valve : public net::transport {
 public:
  struct sent {
    node_id to;
    net::header h;
    std::vector<std::byte> payload;
  };

  [[nodiscard]] net::capabilities about() const noexcept override { return {true, "valve"}; }
  [[nodiscard]] bool reaches(node_id) const noexcept override { return true; }
  net::send_outcome try_send(node_id to, net::header h, std::span<const std::byte> head,
                             std::span<const std::byte> body) override {
    const std::lock_guard lock(mutex_);
    if (std::exchange(has_no_memory_, false)) throw std::bad_alloc();
    if (to == 2 && !open_) return net::send_outcome::would_block;
    sent s{to, h, {head.begin(), head.end()}};
    s.payload.insert(s.payload.end(), body.begin(), body.end());
    all_.push_back(std::move(s));
    return net::send_outcome::sent;
  }
  bool flush(node_id to) override {
    const std::lock_guard lock(mutex_);
    return to != 2 || open_;
  }
  std::size_t poll(net::receiver&, std::size_t) override { return 0; }
  void wait_for_messages(std::int64_t) override {}
  void wake_receiver() noexcept override {}
  void wait_for_room(std::int64_t) override {
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [&] { return std::exchange(woken_, false); });
  }
  void wake_sender() noexcept override {
    const std::lock_guard lock(mutex_);
    woken_ = true;
    wake_.notify_all();
  }
  [[nodiscard]] traffic counted() const noexcept override { return {}; }

  void open() {
    {
      const std::lock_guard lock(mutex_);
      open_ = true;
    }
    wake_sender();
  }
  void refuse_once() {
    const std::lock_guard lock(mutex_);
    has_no_memory_ = true;
  }
  std::vector<sent> all() {
    const std::lock_guard lock(mutex_);
    return all_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  bool woken_ = false, open_ = false, has_no_memory_ = false;
  std::vector<sent> all_;
};

template <class T>
T content(const std::vector<std::byte>& payload, std::size_t at = 0) {
  T value;
  std::memcpy(&value, payload.data() + at, sizeof value);
  return value;
}

// While its sender runs and that happens, until so many have been sent.
template <class F>
std::vector<valve::sent> sent_by_sender(links& l, valve& v, std::size_t count, F happens) {
  std::thread sender([&] { l.run_sender(v); });
  happens();
  while (v.all().size() < count) std::this_thread::yield();
  l.stop();
  v.wake_sender();
  sender.join();
  return v.all();
}

TEST(gateway, tells_the_source_when_too_much_waits) {
  valve v;
  links l(1, {&v}, routes(1, 3, &row));
  const forwarded_head what{static_cast<net::message_kind>(kind::put), 0, 2, 1};
  std::vector<std::byte> payload(32 << 10);
  constexpr std::uint32_t messages = 100;  // 3.2 MiB
  for (std::uint32_t i = 0; i < messages; ++i) {
    std::memcpy(payload.data(), &i, sizeof i);
    l.forward(what, payload);
  }
  ASSERT_EQ(v.all().size(), 1U) << "told once";
  EXPECT_EQ(v.all()[0].to, 0);
  EXPECT_EQ(static_cast<kind>(v.all()[0].h.kind), kind::hold);
  EXPECT_EQ(content<held_head>(v.all()[0].payload).destination, 2);
  EXPECT_EQ(content<held_head>(v.all()[0].payload).number, 1);

  const auto all = sent_by_sender(l, v, messages + 2, [&] { v.open(); });
  ASSERT_EQ(all.size(), messages + 2);
  for (std::uint32_t i = 0; i < messages; ++i) {
    const valve::sent& one = all[1 + i];
    EXPECT_EQ(one.to, 2);
    EXPECT_EQ(static_cast<kind>(one.h.kind), kind::forward);
    EXPECT_EQ(content<forwarded_head>(one.payload).source, 0);
    EXPECT_EQ(content<std::uint32_t>(one.payload, sizeof what), i);
  }
  EXPECT_EQ(content<held_head>(all.back().payload).number, 2);
  EXPECT_EQ(l.forwarded(), messages);
}

TEST(gateway, holds_back_who_sends_by_it) {
  valve v;
  links l(0, {&v}, routes(0, 4, &row));
  EXPECT_FALSE(l.is_congested(2));
  hold(l, 1, {2, 1});
  EXPECT_TRUE(l.is_congested(2));
  EXPECT_FALSE(l.is_congested(1)) << "what goes no further is not held";
  std::thread waits([&] { l.wait_for_room(2); });
  hold(l, 1, {2, 2});
  waits.join();
  // The release of the word before comes late.
  hold(l, 1, {2, 5});
  hold(l, 1, {2, 4});
  EXPECT_TRUE(l.is_congested(2));
  hold(l, 1, {2, 6});
  EXPECT_FALSE(l.is_congested(2));
  // Two gateways on the way: both have to have room.
  hold(l, 1, {2, 7});
  hold(l, 3, {2, 1});
  hold(l, 1, {2, 8});
  EXPECT_TRUE(l.is_congested(2));
  std::thread waits_again([&] { l.wait_for_room(2); });
  l.stop_waiting();  // the job has lost a node
  waits_again.join();
}

// Though that one is there, and takes nothing: it may have ended, too, because of the loss.
TEST(neighbours, are_not_waited_for_when_the_job_has_lost_a_node) {
  valve v;
  links l(1, {&v}, routes(1, 3, &row));
  const std::vector<std::byte> payload(32 << 10);
  while (!l.is_congested(2)) l.post(2, kind::put, payload, {});
  std::thread waits([&] { l.wait_for_room(2); });
  l.stop_waiting();
  waits.join();
  l.post(2, kind::put, payload, {});
  EXPECT_FALSE(l.is_congested(2));
}

// As valve, over networks that break.
class breaking_valve final : public valve {
 public:
  [[nodiscard]] net::capabilities about() const noexcept override {
    return {.reliable = true, .name = "valve", .may_break = true};
  }
};

// Nobody else knows of what goes by it any more, nor says its words for it.
TEST(gateway, says_all_in_the_end_where_there_was_no_memory) {
  breaking_valve v;
  links l(1, {&v}, routes(1, 3, &row), links::traits{false, true});
  const forwarded_head what{static_cast<net::message_kind>(kind::put), 0, 2, 1};
  v.refuse_once();
  EXPECT_NO_THROW(l.forward(what, {}));
  v.refuse_once();
  EXPECT_NO_THROW(l.has_come(0, kind::put, std::size_t{1} << 20));
  v.refuse_once();
  EXPECT_NO_THROW(l.pass_on(0, {}, {}, {2, 0}));
  const std::vector<std::byte> payload(std::size_t{2} << 20);
  v.refuse_once();
  EXPECT_NO_THROW(l.forward(what, payload));
  const std::vector<kind> kinds{kind::confirmed, kind::detour, kind::hold};
  const auto all = v.all();
  ASSERT_EQ(all.size(), kinds.size());
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    EXPECT_EQ(all[i].to, 0) << i;
    EXPECT_EQ(static_cast<kind>(all[i].h.kind), kinds[i]) << i;
  }
  EXPECT_EQ(l.queued_bytes(2), 2 * (sizeof(net::header) + sizeof what) + payload.size());
}

// Nor of what was kept back for one that has come now.
TEST(neighbours, get_all_that_was_kept_back_where_there_was_no_memory) {
  valve v;
  links l(0, {&v}, routes(0, 3, &row), links::traits{true, false});
  l.keep_back(2, true);
  for (std::uint32_t i = 0; i < 3; ++i) l.post(2, kind::put, std::as_bytes(std::span(&i, 1)), {});
  v.refuse_once();
  l.keep_back(2, false);
  const auto all = v.all();
  ASSERT_EQ(all.size(), 3U);
  for (std::uint32_t i = 0; i < 3; ++i)
    EXPECT_EQ(content<std::uint32_t>(all[i].payload, sizeof(forwarded_head)), i);
}

// The connection ends on which a gateway's source waits for room: it need not wait any more when
// all that waited there has gone around.
TEST(gateway, lets_its_source_go_when_what_waited_has_gone_around) {
  breaking_valve v;
  links l(1, {&v}, routes(1, 3, &row), links::traits{false, true});
  const forwarded_head what{static_cast<net::message_kind>(kind::put), 0, 2, 1};
  const std::vector<std::byte> payload(32 << 10);
  constexpr unsigned messages = 40;
  for (unsigned i = 0; i < messages; ++i) l.forward(what, payload);
  ASSERT_EQ(v.all().size(), 1U);
  EXPECT_EQ(content<held_head>(v.all()[0].payload).number, 1);
  EXPECT_EQ(l.close(2), 0U);
  l.go_by(2, 0, {0, 2});
  const auto all = sent_by_sender(l, v, messages + 2, [] {});
  ASSERT_EQ(all.size(), messages + 2);
  for (unsigned i = 0; i < messages; ++i) {
    EXPECT_EQ(all[1 + i].to, 0) << i;
    EXPECT_EQ(static_cast<kind>(all[1 + i].h.kind), kind::detour) << i;
  }
  EXPECT_EQ(static_cast<kind>(all.back().h.kind), kind::hold);
  EXPECT_EQ(content<held_head>(all.back().payload).number, 2);
}

// What the connection had, and what came after it, in order.
TEST(neighbours, go_on_where_the_connection_has_ended) {
  breaking_valve first, second;
  links l(1, {&first, &second}, routes(1, 3, &row), links::traits{false, true});
  ASSERT_TRUE(l.has_spare(0));
  for (std::uint32_t i = 0; i < 5; ++i) l.post(0, kind::put, std::as_bytes(std::span(&i, 1)), {});
  EXPECT_EQ(l.given(0), 5U);
  l.close(0);
  for (std::uint32_t i = 5; i < 8; ++i) l.post(0, kind::put, std::as_bytes(std::span(&i, 1)), {});
  EXPECT_THROW(l.go_on(0, 6), malformed) << "more has come than was given";
  l.go_on(0, 3);
  std::thread sender([&] { l.run_sender(second); });
  while (second.all().size() < 5) std::this_thread::yield();
  l.stop();
  second.wake_sender();
  sender.join();
  EXPECT_EQ(first.all().size(), 5U);
  for (std::uint32_t i = 0; i < 5; ++i)
    EXPECT_EQ(content<std::uint32_t>(second.all()[i].payload), i + 3);
  EXPECT_EQ(l.given(0), 8U);
}

// 0 - 1 - 2 and 0 - 3 - 2.
std::optional<std::int64_t> square(node_id a, node_id b) {
  return (a + b) % 2 != 0 ? std::optional<std::int64_t>(1) : std::nullopt;
}

TEST(ways, change_behind_all_that_was_sent_before) {
  valve v;
  v.open();
  links l(0, {&v}, routes(0, 4, &square), links::traits{false, true});
  ASSERT_TRUE(l.post(2, kind::put, {}, {}));
  const std::uint32_t number = 1;
  l.change_way(2, 3, number, std::as_bytes(std::span(&number, 1)));
  ASSERT_TRUE(l.post(2, kind::put, {}, {}));
  l.change_way(2, 2, 2, std::as_bytes(std::span(&number, 1)));
  ASSERT_TRUE(l.post(2, kind::put, {}, {}));
  const auto all = v.all();
  ASSERT_EQ(all.size(), 5U);
  const std::vector<node_id> to{1, 1, 3, 3, 2};
  const std::vector<kind> kinds{kind::put, kind::way_ends, kind::put, kind::way_ends};
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].to, to[i]) << i;
    if (i == 4) break;
    const auto head = content<forwarded_head>(all[i].payload);
    EXPECT_EQ(static_cast<kind>(head.kind), kinds[i]) << i;
    EXPECT_EQ(head.destination, 2);
    EXPECT_EQ(head.ways, i < 2 ? 0U : 1U) << i;
  }
  EXPECT_EQ(static_cast<kind>(all[4].h.kind), kind::put);
}

TEST(ways, are_those_of_the_number_that_a_message_carries) {
  valve v;
  v.open();
  const auto by = [](node_id gateway) {
    return [gateway](node_id a, node_id b) -> std::optional<link> {
      const bool is_one = a == gateway || b == gateway;
      const node_id other = a == gateway ? b : a;
      return is_one && (other == 1 || other == 2) ? std::optional<link>(1) : std::nullopt;
    };
  };
  links l(1, {&v}, routes(1, 4, by(0)), links::traits{false, true});
  l.set_table(1, routes(1, 4, by(3)));
  const auto put = static_cast<net::message_kind>(kind::put);
  for (const std::uint32_t number : {0U, 1U, 0U}) l.forward({put, 3, 2, 1, number}, {});
  EXPECT_THROW(l.forward({put, 3, 2, 1, 2}, {}), malformed) << "of ways that nobody has heard of";
  l.set_table(2, routes(1, 4, by(3)));
  EXPECT_THROW(l.forward({put, 3, 2, 1, 0}, {}), malformed) << "of ways that nobody goes any more";
  // Where no way leads.
  links far(0, {&v}, routes(0, 4, [](node_id, node_id) { return std::optional<link>(); }),
            links::traits{true, true});
  EXPECT_THROW(far.forward({put, 3, 2, 1, 0}, {}), malformed);
  const auto all = v.all();
  ASSERT_EQ(all.size(), 3U);
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i].to, i == 1 ? 3 : 0) << i;
}

// Who waits for room on the old way waits on the new one then.
TEST(ways, change_for_those_who_wait_for_room) {
  valve v;
  links l(0, {&v}, routes(0, 4, &square), links::traits{false, true});
  hold(l, 1, {2, 1});
  EXPECT_TRUE(l.is_congested(2));
  std::thread waits([&] { l.wait_for_room(2); });
  l.change_way(2, 3, 1, {});
  EXPECT_TRUE(l.is_congested(2)) << "what waits there is still under way";
  l.forget_words_of(1);  // it has left
  waits.join();
  EXPECT_FALSE(l.is_congested(2));
}

TEST(gateway, refuses_what_nobody_can_have_sent) {
  const auto take = [](forwarded_head what, node_id self = 1) {
    return take_forwarded(reader(std::as_bytes(std::span(&what, 1))), self, 3);
  };
  const auto put = static_cast<net::message_kind>(kind::put);
  EXPECT_EQ(take({put, 0, 2, 1}).what.hops, 2);
  EXPECT_EQ(take({put, 0, 1, 2}).what.hops, 2) << "for us";
  for (const forwarded_head& wrong :
       {forwarded_head{put, 3, 2, 0}, forwarded_head{put, 0, 3, 0}, forwarded_head{put, 1, 2, 0},
        forwarded_head{put, 2, 2, 0},
        forwarded_head{static_cast<net::message_kind>(kind::forward), 0, 2, 0}})
    EXPECT_THROW((void)take(wrong), malformed);
  // Once by every node, and it is still not there.
  EXPECT_THROW((void)take({put, 0, 2, 2}), malformed);
  EXPECT_THROW((void)take({put, 0, 2, UINT16_MAX}), malformed);
  const std::array<std::byte, 7> short_one{};
  EXPECT_THROW((void)take_forwarded(reader(short_one), 1, 3), malformed);
}

}  // namespace
}  // namespace strata::cluster
