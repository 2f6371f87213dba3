// SPDX-License-Identifier: Apache-2.0
// Threads of many simulated nodes that receive with too little room, and use what they have ended
// with: what does not fit is said and stays there, in its order, and a handle is used once.
#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <vector>

#include "program_job.hpp"
#include "strata/message.hpp"
#include "used_handle.hpp"

namespace strata::test {
namespace {

using net::node_id;

struct label {
  std::uint32_t sender, receiver, number;
};

std::byte byte_behind(const label& s, std::size_t i) {
  return static_cast<std::byte>(s.number * 31 + s.sender * 7 + i * 13 + (i >> 9));
}

// How often there was something to test, which a single seed may miss.
struct happened {
  unsigned too_large = 0, passed_over = 0, cancelled = 0;
  void expect_all() const {
    EXPECT_GT(too_large, 0U);
    EXPECT_GT(passed_over, 0U);
    EXPECT_GT(cancelled, 0U);
  }
};

class cramped {
 public:
  static constexpr node_id nodes = 3;
  static constexpr std::uint32_t each = 40;  // messages from each sender to each receiver

  cramped(std::uint64_t seed, std::size_t transfer_bytes_min, happened& counted)
      : p(seed, model_of(transfer_bytes_min)), counted_(counted) {
    for (node_id n = 0; n < nodes; ++n) p.begin(n, [this, n] { send_all(n); });
    for (node_id n = 0; n < nodes; ++n) p.begin(n, [this, n] { receive_all(n); });
  }

  program_job p;

 private:
  static sim::job_model model_of(std::size_t transfer_bytes_min) {
    return {.nodes = nodes, .transfer_bytes_min = transfer_bytes_min};
  }

  std::size_t drawn_size() {
    const std::uint64_t kind = p.below(12);
    return kind == 0 ? p.below(400'000) : kind < 4 ? p.below(20'000) : p.below(150);
  }

  void await_all_endpoints() {
    while (std::count(senders_.begin(), senders_.end(), endpoint_id()) +
               std::count(receivers_.begin(), receivers_.end(), endpoint_id()) !=
           0)
      p.pause(10'000);
  }

  void send_all(node_id self) {
    endpoint mine;
    senders_[self] = mine.id();
    await_all_endpoints();
    std::deque<std::pair<std::vector<std::byte>, transfer>> begun;
    for (std::uint32_t i = 0; i < each * nodes; ++i) {
      const label s{self, i % nodes, i / nodes};
      auto& [bytes, handle] = begun.emplace_back();
      bytes.resize(sizeof s + drawn_size());
      std::memcpy(bytes.data(), &s, sizeof s);
      for (std::size_t at = sizeof s; at < bytes.size(); ++at) bytes[at] = byte_behind(s, at);
      const auto tag = static_cast<message_tag>(p.below(3));
      const endpoint_id to = receivers_[s.receiver];
      switch (p.below(3)) {
        case 0:
          mine.send(to, tag, bytes);
          break;
        case 1:
          handle = mine.start_send(to, tag, bytes);
          break;
        default:
          handle = mine.start_synchronous_send(to, tag, bytes);
      }
      if (p.below(3) == 0) p.pause(200'000);
    }
    for (auto& [bytes, handle] : begun) {
      if (!handle.valid()) continue;
      EXPECT_EQ(handle.wait().bytes, bytes.size());
      expect_used(handle);
    }
    // What it has sent is received only as long as it exists.
    while (left_ != 0) p.pause(program_job::ms);
  }

  void receive_all(node_id self) {
    endpoint mine;
    receivers_[self] = mine.id();
    await_all_endpoints();
    for (std::uint32_t left = each * nodes; left != 0;) {
      switch (p.below(4)) {
        case 0:
          left -= receive_at_last(self, mine);
          break;
        case 1:
          left -= take(self, mine.receive_message().content);
          break;
        case 2:
          left -= receive_two(self, mine);
          break;
        default: {
          const message_info next = mine.wait_probe();
          left -= receive_exactly(self, mine, next);
        }
      }
    }
    EXPECT_FALSE(mine.probe().has_value());
    expect_used_by_cancelling(mine);
  }

  // 1, as all that count what they have received.
  std::uint32_t take(node_id self, std::span<const std::byte> bytes) {
    label s{};
    EXPECT_GE(bytes.size(), sizeof s);
    std::memcpy(&s, bytes.data(), std::min(bytes.size(), sizeof s));
    EXPECT_EQ(s.receiver, self);
    if (s.sender < nodes) {
      EXPECT_EQ(s.number, next_[self][s.sender]++) << "from node " << s.sender;
    }
    for (std::size_t at = sizeof s; at < bytes.size(); ++at) {
      if (bytes[at] != byte_behind(s, at)) {
        ADD_FAILURE() << "byte " << at << " of message " << s.number;
        break;
      }
    }
    --left_;
    return 1;
  }

  std::uint32_t receive_exactly(node_id self, endpoint& mine, const message_info& which) {
    std::vector<std::byte> room(which.bytes);
    const message_info m = mine.receive(room, which.source, which.tag);
    EXPECT_EQ(m.bytes, which.bytes) << "another message than the one that was too large";
    return take(self, std::span(room).first(m.bytes));
  }

  // The oldest message, which may not fit, and how often that is said does not matter.
  std::uint32_t receive_at_last(node_id self, endpoint& mine) {
    std::vector<std::byte> room(drawn_size());
    for (;;) {
      try {
        const message_info m = mine.receive(room);
        return take(self, std::span(room).first(m.bytes));
      } catch (const message_too_large_error& e) {
        ++counted_.too_large;
        EXPECT_GT(e.which().bytes, room.size());
        if (p.below(2) == 0) return receive_exactly(self, mine, e.which());
        room.resize(2 * room.size() + 1);
      }
    }
  }

  // The first may have too little room for what comes, which the second takes then.
  std::uint32_t receive_two(node_id self, endpoint& mine) {
    std::vector<std::byte> little(drawn_size()), much(sizeof(label) + 400'000);
    transfer first = mine.start_receive(little);
    transfer second = mine.start_receive(much);
    std::uint32_t received = 0;
    std::size_t wanted = 0;  // of the one that did not fit
    try {
      const message_info m = first.wait();
      received += take(self, std::span(little).first(m.bytes));
    } catch (const message_too_large_error& e) {
      ++counted_.passed_over;
      wanted = e.which().bytes;
      EXPECT_GT(wanted, little.size());
    }
    expect_used(first);
    if (wanted == 0 && second.cancel()) {
      ++counted_.cancelled;
    } else {
      const message_info m = second.wait();
      if (wanted != 0) {
        EXPECT_EQ(m.bytes, wanted);
      }
      received += take(self, std::span(much).first(m.bytes));
    }
    expect_used(second);
    return received;
  }

  void expect_used_by_cancelling(endpoint& mine) {
    std::array<std::byte, 8> room;
    transfer t = mine.start_receive(room);
    transfer moved = std::move(t);
    expect_used(t);
    EXPECT_FALSE(moved.test());
    EXPECT_TRUE(moved.cancel());
    expect_used(moved);
  }

  std::array<endpoint_id, nodes> senders_{}, receivers_{};
  std::array<std::array<std::uint32_t, nodes>, nodes> next_{};
  std::uint32_t left_ = each * nodes * nodes;
  happened& counted_;
};

TEST(simulated_handles, leave_what_is_too_large_there) {
  happened in_all;
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    cramped(seed, net::transfers::never, in_all).p.run();
  }
  in_all.expect_all();
}

TEST(simulated_handles, leave_what_would_be_transferred_there) {
  happened in_all;
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    cramped(seed, 100'000, in_all).p.run();
  }
  in_all.expect_all();
}

TEST(simulated_handles, are_replayed_exactly_by_their_seed) {
  const auto outcome = [] {
    happened any;
    cramped c(7, 100'000, any);
    c.p.run();
    return c.p.outcome();
  };
  EXPECT_EQ(outcome(), outcome());
}

// Of an endpoint that ends under its receives: nobody is left waiting, and what was to come says
// whose end it was.
TEST(simulated_handles, of_an_endpoint_that_ends_are_ended) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    program_job p(seed, {.nodes = 2});
    endpoint_id there;
    p.begin(1, [&] {
      endpoint mine;
      there = mine.id();
      p.pause(2 * program_job::ms);
    });
    p.begin(0, [&] {
      while (!there) p.pause(10'000);
      endpoint mine;
      const std::vector<std::byte> bytes(1 + p.below(3'000));
      transfer sent = mine.start_synchronous_send(there, 0, bytes);
      try {
        (void)sent.wait();
        ADD_FAILURE() << "nobody has received it";
      } catch (const endpoint_closed_error& e) {
        EXPECT_EQ(e.which(), there);
      }
      expect_used(sent);
      EXPECT_THROW(mine.start_synchronous_send(there, 0, bytes).wait(), endpoint_closed_error);
    });
    p.run();
  }
}

}  // namespace
}  // namespace strata::test
