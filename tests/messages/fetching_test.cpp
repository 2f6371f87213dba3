// SPDX-License-Identifier: Apache-2.0
// By which way messages of middling size are fetched from a node of the same host: two messengers,
// between which the test is the network.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "../common/known_bytes.hpp"
#include "messages/messenger.hpp"
#include "messages/process_memory.hpp"

namespace strata::messages {
namespace {

using cluster::kind;
using net::node_id;

class two_nodes {
 public:
  // What they say goes on until nobody has anything to say.
  void carry() {
    while (!under_way_.empty()) {
      const said s = std::move(under_way_.front());
      under_way_.pop_front();
      ASSERT_TRUE(nodes_[s.to].here.on_message(1 - s.to, s.what, cluster::reader(s.bytes)));
    }
  }
  [[nodiscard]] messenger& of(node_id n) noexcept { return nodes_[n].here; }
  // Whether somebody of node 0 looks for messages all the time.
  void attend(bool does) noexcept { nodes_[1].copies.attended = does; }

 private:
  struct said {
    node_id to;
    kind what;
    std::vector<std::byte> bytes;
  };
  struct shared_memory final : net::joint_copies {
    bool attended = true;
    copy* copies_of(node_id) noexcept override { return nullptr; }
    [[nodiscard]] bool is_attended(node_id) const noexcept override { return attended; }
  };
  struct node final : cluster::mailer, cluster::local_node {
    node(two_nodes& all_, node_id n) : all(all_), number(n) {
      here.join(*this, *this, counts, std::vector<bool>(2, true));
    }
    ~node() { here.retire(); }
    node(const node&) = delete;
    node& operator=(const node&) = delete;

    [[nodiscard]] node_id self() const noexcept override { return number; }
    [[nodiscard]] node_id nodes() const noexcept override { return 2; }
    [[nodiscard]] const cluster::membership& members() const noexcept override { return both; }
    void post(node_id to, kind k, std::span<const std::byte> head,
              std::span<const std::byte> body) override {
      said s{to, k, {head.begin(), head.end()}};
      s.bytes.insert(s.bytes.end(), body.begin(), body.end());
      all.under_way_.push_back(std::move(s));
    }
    void wait_for_room(node_id) override {}
    [[nodiscard]] net::joint_copies* copies_with(node_id) noexcept override { return &copies; }

    // Nothing runs here.
    void run_soon(detail::task*) override { ADD_FAILURE() << "a task"; }
    detail::task* take_travelling() override { return nullptr; }
    detail::task* take_travelling_from(detail::worker&) override { return nullptr; }
    detail::task* take_shelvable_from(detail::worker&) override { return nullptr; }
    detail::task* take_shared() override { return nullptr; }
    void ask_everybody() override {}
    [[nodiscard]] bool is_idle() const override { return true; }
    [[nodiscard]] bool is_still() const override { return true; }
    [[nodiscard]] std::uint32_t load() const override { return 0; }
    void fail(std::exception_ptr) override { ADD_FAILURE() << "a failure"; }
    void settle(bool) override {}
    detail::worker& network_worker() override { return detail::this_worker(); }

    two_nodes& all;
    const node_id number;
    cluster::membership both{number, 2, {static_cast<node_id>(1 - number)}};
    cluster::work_counts counts;
    shared_memory copies;
    messenger here;
  };

  std::deque<said> under_way_;
  node nodes_[2]{{*this, 0}, {*this, 1}};
};

class fetching : public testing::Test {
 protected:
  static constexpr std::size_t bytes = std::size_t{128} << 10;
  static constexpr unsigned a_lap = (2U << 20) / bytes;

  void SetUp() override {
    std::uint64_t seen = 0;
    if (!read_process(own_process(), own_mark(), own_mark().address, &seen, sizeof(seen)))
      GTEST_SKIP() << "this machine lets no process read its own memory by a call";
  }
  ~fetching() override {
    job_.of(0).close(source_, from_);
    job_.of(1).close(target_, to_);
    job_.carry();
  }
  // So many messages, one behind the other, each of which waits for its receive.
  void send_and_receive(unsigned count) {
    for (unsigned i = 0; i < count; ++i) {
      const std::vector<std::byte> out = test::known_bytes<bytes>(++seed_, bytes);
      std::vector<std::byte> in(bytes);
      request sends;
      sends.what = action::send;
      sends.messenger = &job_.of(0);
      sends.mine = &from_;
      sends.from = out;
      sends.info = {source_, target_, 1, bytes};
      job_.of(0).send(sends);
      job_.carry();
      request receives;
      receives.messenger = &job_.of(1);
      receives.mine = &to_;
      receives.into = in;
      receives.info.target = target_;
      job_.of(1).receive(receives);
      job_.carry();
      ASSERT_TRUE(sends.is_done() && receives.is_done());
      ASSERT_EQ(receives.result().bytes, bytes);
      ASSERT_TRUE(test::same(in, out));
    }
  }
  [[nodiscard]] message_statistics counted() { return job_.of(1).counted(); }

  two_nodes job_;
  port& from_ = job_.of(0).open();
  port& to_ = job_.of(1).open();
  const endpoint_id source_ = from_.id, target_ = to_.id;
  unsigned seed_ = 0;
};

// However long either takes: both are measured before one is kept.
TEST_F(fetching, of_middling_messages_is_tried_both_ways) {
  send_and_receive(a_lap);
  EXPECT_EQ(counted().pulled, a_lap);
  EXPECT_EQ(counted().read, 0U);
  // That lap's end is timed, then a lap is read, and some of the next.
  send_and_receive(quicker_way::samples + 1);
  EXPECT_EQ(counted().read, 1U);
  send_and_receive(4 * a_lap);
  EXPECT_GE(counted().read, quicker_way::samples);
  EXPECT_EQ(counted().read + counted().pulled, 5 * a_lap + quicker_way::samples + 1);
}

TEST_F(fetching, reads_from_who_is_asleep) {
  job_.attend(false);
  send_and_receive(4 * a_lap);
  EXPECT_EQ(counted().read, 4 * a_lap);
}

}  // namespace
}  // namespace strata::messages
