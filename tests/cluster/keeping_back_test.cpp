// SPDX-License-Identifier: Apache-2.0
// What is kept back for a node that comes or leaves, while several threads go on posting.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "cluster/links/links.hpp"
#include "nodes_in_a_row.hpp"

namespace strata::cluster {
namespace {

struct numbered {
  std::uint32_t thread, number;
};

// Takes everything, but now and then not at once.
class moody final : public net::transport {
 public:
  explicit moody(bool reaches_all = true) : reaches_all_(reaches_all) {}
  [[nodiscard]] net::capabilities about() const noexcept override { return {true, "moody"}; }
  [[nodiscard]] bool reaches(node_id n) const noexcept override { return reaches_all_ || n == 0; }
  net::send_outcome try_send(node_id to, net::header h, std::span<const std::byte> head,
                             std::span<const std::byte> body) override {
    const std::lock_guard lock(mutex_);
    if (++asked_ % 7 == 0) return net::send_outcome::would_block;
    std::vector<std::byte> payload(head.begin(), head.end());
    payload.insert(payload.end(), body.begin(), body.end());
    sent.push_back({to, static_cast<kind>(h.kind), std::move(payload)});
    return net::send_outcome::sent;
  }
  bool flush(node_id) override { return true; }
  std::size_t poll(net::receiver&, std::size_t) override { return 0; }
  void wait_for_messages(std::int64_t) override {}
  void wake_receiver() noexcept override {}
  void wait_for_room(std::int64_t) override { std::this_thread::yield(); }
  void wake_sender() noexcept override {}
  [[nodiscard]] traffic counted() const noexcept override { return {}; }

  struct one {
    node_id to;
    kind k;
    std::vector<std::byte> payload;
  };
  std::vector<one> sent;  // when nobody sends any more

 private:
  const bool reaches_all_;
  std::mutex mutex_;
  unsigned asked_ = 0;
};

// Node 0 posts to node `to`, a neighbour or, in a row, by node 1.
class flood {
 public:
  static constexpr std::uint32_t threads = 3, messages = 3000;

  flood(const routes& ways, node_id to) : to_(to), links_(0, {&way_}, ways, true) {}

  // `meanwhile` while they post.
  template <class F>
  void run(const F& meanwhile) {
    std::thread sender([&] { links_.run_sender(way_); });
    std::vector<std::thread> all;
    for (std::uint32_t t = 0; t < threads; ++t) {
      all.emplace_back([this, t] {
        for (std::uint32_t i = 0; i < messages; ++i) {
          const numbered n{t, i};
          if (!links_.post(to_, kind::message, std::as_bytes(std::span(&n, 1)), {})) ++refused;
          begun = true;
        }
      });
    }
    while (!begun) std::this_thread::yield();
    meanwhile(links_);
    for (std::thread& t : all) t.join();
    after(links_);
    links_.stop();
    sender.join();
    count();
  }

  std::function<void(links&)> after = [](links&) {};
  std::atomic<bool> begun{false};
  std::atomic<std::uint32_t> refused{0};
  std::uint32_t arrived = 0;
  bool in_order = true;

 private:
  void count() {
    std::array<std::uint32_t, threads> next{};
    for (const moody::one& m : way_.sent) {
      const bool far = m.k == kind::forward;
      numbered n{};
      ASSERT_EQ(m.payload.size(), sizeof n + (far ? sizeof(forwarded_head) : 0));
      std::memcpy(&n, m.payload.data() + m.payload.size() - sizeof n, sizeof n);
      in_order &= n.number == next[n.thread];
      next[n.thread] = n.number + 1;
      ++arrived;
    }
  }

  const node_id to_;
  moody way_;
  links links_;
};

class keeping_back : public testing::TestWithParam<bool> {
 protected:
  [[nodiscard]] static routes ways() { return GetParam() ? routes(0, 3, &row) : routes(0, 3); }
};
INSTANTIATE_TEST_SUITE_P(nodes, keeping_back, testing::Bool(),
                         [](const auto& p) { return p.param ? "far" : "near"; });

TEST_P(keeping_back, loses_nothing_and_keeps_the_order) {
  flood f(ways(), 2);
  f.run([](links& l) {
    for (int i = 0; i < 200; ++i) {
      l.keep_back(2, true);
      std::this_thread::yield();
      l.keep_back(2, false);
      std::this_thread::yield();
    }
  });
  EXPECT_EQ(f.arrived, flood::threads * flood::messages);
  EXPECT_TRUE(f.in_order);
  EXPECT_EQ(f.refused, 0U);
}

TEST_P(keeping_back, leaves_nothing_behind_when_the_node_has_left) {
  flood f(ways(), 2);
  std::size_t kept = 0;
  f.after = [&](links& l) { EXPECT_TRUE(l.retire(2).empty()); };
  f.run([&](links& l) {
    l.keep_back(2, true);
    std::this_thread::yield();
    kept = l.retire(2).size();
  });
  EXPECT_EQ(f.arrived + kept + f.refused, flood::threads * flood::messages);
  EXPECT_TRUE(f.in_order);
}

TEST_P(keeping_back, concerns_what_carries_work) {
  moody way;
  links l(0, {&way}, ways(), true);
  l.keep_back(2, true);
  for (const kind k :
       {kind::signal, kind::message, kind::steal, kind::tokens, kind::failed, kind::settled})
    EXPECT_TRUE(l.post(2, k, {}, {}));
  EXPECT_TRUE(way.sent.empty());
  // A leaver still answers for quiescence, and hears what concerns all.
  for (const kind k : {kind::probe, kind::lost, kind::left}) EXPECT_TRUE(l.post(2, k, {}, {}));
  EXPECT_EQ(way.sent.size(), 3U);
  EXPECT_EQ(l.retire(2).size(), 6U);
  EXPECT_FALSE(l.post(2, kind::settled, {}, {}));
  EXPECT_TRUE(l.post(2, kind::parted, {}, {}));
}

// However it goes on: by others, if it was to go directly, or the other way round.
TEST_P(keeping_back, counts_what_waits_until_it_has_gone) {
  moody way;
  links l(0, {&way}, ways(), links::traits{true, true});
  l.keep_back(2, true);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(l.post(2, kind::signal, {}, {}));
  EXPECT_EQ(l.queued_bytes(2), 3 * sizeof(net::header));
  l.change_way(2, GetParam() ? 2 : 1, 1, {});
  l.keep_back(2, false);
  EXPECT_TRUE(l.send_queued(way));
  ASSERT_EQ(way.sent.size(), 3U);
  EXPECT_EQ(way.sent[0].k, GetParam() ? kind::signal : kind::forward);
  EXPECT_EQ(l.queued_bytes(2), 0U);
  EXPECT_FALSE(l.is_congested(2)) << "the program would wait for ever";
}

// Node 0 counts a comer before every other node has got hold of its connection.
TEST(keeping_back_for_a_comer, is_for_everything_until_there_is_a_way) {
  moody here(false);
  links l(1, {&here}, routes(1, 3), true);
  for (const kind k : {kind::probe, kind::signal, kind::heartbeat})
    EXPECT_TRUE(l.post(2, k, {}, {}));
  l.keep_back(2, false);  // whoever said so is not that node
  moody way;
  l.admit(2, way);
  EXPECT_TRUE(l.post(2, kind::get, {}, {}));
  l.keep_back(2, false);
  std::thread sender([&] { l.run_sender(way); });
  l.stop();
  sender.join();
  std::vector<kind> arrived;
  for (const moody::one& m : way.sent) arrived.push_back(m.k);
  EXPECT_EQ(arrived, (std::vector<kind>{kind::probe, kind::signal, kind::heartbeat, kind::get}));
}

}  // namespace
}  // namespace strata::cluster
