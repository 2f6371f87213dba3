// SPDX-License-Identifier: Apache-2.0
// A receiver that is slower than its senders, for a minute: what has left them and was not received
// stays within the room that there is, wherever it is kept; then it takes all that is left, once
// and in order.
#include <malloc.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "../common/known_bytes.hpp"
#include "program_job.hpp"
#include "strata/message.hpp"

namespace strata::test {
namespace {

using net::node_id;

class slow_reception {
 public:
  static constexpr node_id nodes = 4, receiver = nodes - 1;
  static constexpr unsigned on_each = 2;  // senders
  static constexpr std::int64_t minute_ns = 60'000 * program_job::ms;

  slow_reception(std::uint64_t seed, const sim::job_model& model, const sim::network_model& network)
      : p(seed, model, network) {
    p.job->when_stalled = [](const std::string& text) {
      ADD_FAILURE() << "slow is not stalled: " << text;
    };
    p.begin(receiver, [this] { receive_all(); });
    for (node_id n = 0; n < receiver; ++n) {
      for (unsigned i = 0; i < on_each; ++i) p.begin(n, [this, n, i] { send_on(n, i); });
    }
  }

  void run() {
    p.run([] { return true; }, 2 * minute_ns);
    EXPECT_EQ(received_, sent_);
    for (node_id n = 0; n < receiver; ++n) {
      EXPECT_GE(most_[n], room_bytes / 2) << "node " << n << " was not faster";
    }
    // What is kept of each of some ten thousand messages and never given back would be here.
    EXPECT_LE(allocated_late_.mean(), allocated_early_.mean() + (std::size_t{256} << 10));
  }

  program_job p;

 private:
  struct label {
    std::uint32_t node, sender, number;
    std::uint32_t bytes;  // behind it
  };
  static constexpr message_tag last_tag = 1;
  // As strata/message.hpp says it: for each node that sends.
  static constexpr std::ptrdiff_t room_bytes = 320 << 10, counted_besides = 64;

  std::size_t drawn_size() {
    // A large one keeps its sender from sending others until it is received: few of these.
    const std::uint64_t kind = p.below(200);
    return kind == 0 ? p.below(300'000) : kind < 70 ? p.below(16'000) : p.below(150);
  }
  static std::ptrdiff_t counted(const label& s) {
    return static_cast<std::ptrdiff_t>(sizeof s + s.bytes) + counted_besides;
  }

  void send_on(node_id n, unsigned sender) {
    while (!target_) p.pause(program_job::ms);
    endpoint mine;
    for (std::uint32_t number = 0; !over_; ++number) {
      const label s{n, sender, number, static_cast<std::uint32_t>(drawn_size())};
      std::vector<std::byte> bytes(sizeof s + s.bytes, static_cast<std::byte>(number));
      std::memcpy(bytes.data(), &s, sizeof s);
      mine.send(target_, 0, bytes);
      ++sent_;
      // A large one has been received already.
      unreceived_[n] += counted(s);
      most_[n] = std::max(most_[n], unreceived_[n]);
      if (unreceived_[n] > room_bytes) {
        ADD_FAILURE() << unreceived_[n] << " bytes of node " << n << " have nobody";
        over_ = true;
      }
      p.pause(50'000);
    }
    mine.send(target_, last_tag, std::span<const std::byte>());
  }

  void receive_all() {
    endpoint mine;
    target_ = mine.id();
    for (unsigned left = receiver * on_each; left != 0;) {
      const message m = mine.receive_message();
      if (m.tag == last_tag) {
        --left;
        continue;
      }
      take(m.content);
      over_ = over_ || p.now_ns() >= minute_ns;
      if (over_) continue;
      const struct mallinfo2 now = ::mallinfo2();
      (p.now_ns() < minute_ns / 2 ? allocated_early_ : allocated_late_)
          .add(now.uordblks + now.hblkhd);
      p.pause(6 * program_job::ms);
    }
  }

  void take(const std::vector<std::byte>& content) {
    label s{};
    ASSERT_GE(content.size(), sizeof s);
    std::memcpy(&s, content.data(), sizeof s);
    ASSERT_LT(s.node, receiver);
    ASSERT_LT(s.sender, on_each);
    EXPECT_EQ(s.number, next_[s.node][s.sender]++) << "of sender " << s.sender << " on " << s.node;
    EXPECT_EQ(content.size(), sizeof s + s.bytes);
    EXPECT_TRUE(all_are(static_cast<std::byte>(s.number), std::span(content).subspan(sizeof s)));
    unreceived_[s.node] -= counted(s);
    ++received_;
  }

  endpoint_id target_;
  bool over_ = false;
  std::uint64_t sent_ = 0, received_ = 0;
  std::array<std::ptrdiff_t, receiver> unreceived_{}, most_{};
  std::array<std::array<std::uint32_t, on_each>, receiver> next_{};
  // By the whole process; nothing with AddressSanitizer.
  struct {
    std::size_t sum = 0, times = 0;
    void add(std::size_t bytes) {
      sum += bytes;
      ++times;
    }
    [[nodiscard]] std::size_t mean() const { return sum / std::max<std::size_t>(times, 1); }
  } allocated_early_, allocated_late_;
};

sim::job_model slow_model() {
  sim::job_model m;
  m.nodes = slow_reception::nodes;
  m.stalls_after_ns = 5'000 * program_job::ms;
  return m;
}

TEST(simulated_slow_receivers, hold_their_senders_up_for_a_minute) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    slow_reception(seed, slow_model(), program_job::misbehaving).run();
  }
}

// Along a row of nodes, of which the first are heard by way of the others: these keep no more, and
// nobody takes who waits for one that is lost.
TEST(simulated_slow_receivers, hold_up_who_sends_by_other_nodes) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    sim::job_model m = slow_model();
    m.links = [](node_id a, node_id b) {
      return a + 1 == b || b + 1 == a ? std::optional<std::int64_t>(1) : std::nullopt;
    };
    m.lost_after_ns = 500 * program_job::ms;
    slow_reception r(seed, m, program_job::disorderly);
    r.run();
    EXPECT_GT(r.p.job->node(2).forwarded(), 0U);
  }
}

}  // namespace
}  // namespace strata::test
