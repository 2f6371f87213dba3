// SPDX-License-Identifier: Apache-2.0
// Messages between simulated nodes where memory runs out: whoever waits hears of an end, and what
// was matched is received.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "../common/refused_new.hpp"
#include "cluster/links/detour_words.hpp"
#include "cluster/ways/succession.hpp"
#include "messages/messenger.hpp"
#include "program_job.hpp"
#include "strata/message.hpp"
#include "without_memory.hpp"

namespace strata::test {
namespace {

using net::node_id;

// Of a message by other nodes, and what they keep of it besides their own heads.
constexpr std::size_t by_others_bytes = 3001;
constexpr std::size_t by_others_kept = sizeof(messages::message_head) + by_others_bytes;

// Who looks at all lanes afterwards finds no entry without one.
TEST(simulated_without_memory, what_cannot_be_sent_leaves_nothing) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    program_job p(seed, {.nodes = 2});
    messages::messenger& sends = p.job->node(0).messenger;
    endpoint_id to;
    p.begin(1, [&] {
      endpoint mine;
      to = mine.id();
      EXPECT_EQ(mine.receive_value<int>(), 7);
    });
    p.begin(0, [&] {
      endpoint mine;
      while (!to) p.pause(100'000);
      {
        // A lane with what std::make_shared adds, and less than the table of all.
        const refused_new no_lane(sizeof(messages::lane), sizeof(messages::lane) + 24);
        EXPECT_THROW(mine.send_value(to, 1, 5), std::bad_alloc);
      }
      EXPECT_EQ(sends.describe_waits(), "");
      EXPECT_EQ(sends.counted().sent_whole, 0U);
      mine.send_value(to, 1, 7);
      EXPECT_EQ(sends.counted().sent_whole, 1U);
    });
    p.run();
  }
}

TEST(simulated_without_memory, endpoints_end) {
  program_job p(1, {.nodes = 1});
  p.begin(0, [&] {
    endpoint other;
    std::optional<endpoint> waits(std::in_place), is_full(std::in_place);
    std::array<std::array<std::byte, 4>, 20> rooms;
    std::vector<transfer> in_vain;
    for (auto& room : rooms) {
      in_vain.push_back(waits->start_receive(room));
      in_vain.push_back(other.start_synchronous_send(is_full->id(), 1, room));
    }
    {
      const refused_new nothing(1);
      waits.reset();
      is_full.reset();
    }
    for (transfer& t : in_vain) EXPECT_THROW(t.wait(), endpoint_closed_error);
  });
  p.run();
}

// What it had before is not needed for that.
TEST(simulated_without_memory, receives_of_any_size_leave_their_message) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    program_job p(seed, {.nodes = 2});
    const std::vector<std::byte> sent(large, std::byte{3});
    endpoint_id to;
    p.begin(0, [&] {
      endpoint mine;
      while (!to) p.pause(100'000);
      mine.send(to, 1, sent);
    });
    p.begin(1, [&] {
      endpoint mine;
      to = mine.id();
      std::vector<std::byte> content(1000);
      {
        const refused_new little(large);
        transfer receives = mine.start_receive_message(content);
        EXPECT_THROW(receives.wait(), std::bad_alloc);
        EXPECT_THROW((void)mine.receive_message(), std::bad_alloc);
      }
      EXPECT_EQ(mine.receive_message().content, sent);
    });
    p.run();
  }
}

// What waits there for its receive, and what is about to.
TEST(simulated_without_memory, messages_of_other_nodes_are_not_lost) {
  constexpr std::size_t bytes = 3001;
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    for (const std::size_t refused :
         {2 * sizeof(messages::port::account), sizeof(messages::arrival), bytes}) {
      for (const bool is_offered : {false, true}) {
        if (is_offered && refused == bytes) continue;  // it stays with its sender
        program_job p(seed, {.nodes = 2});
        std::optional<refused_new> first_try;
        p.job->node(1).hears = [&](node_id, cluster::kind k, std::span<const std::byte>) {
          if (k == cluster::kind::message || k == cluster::kind::offer)
            first_try.emplace(refused, refused, 1);
          return false;
        };
        const std::vector<std::byte> sent(bytes, std::byte{5});
        endpoint_id to;
        p.begin(1, [&] {
          endpoint mine;
          to = mine.id();
          while (!first_try) p.pause(100'000);
          EXPECT_EQ(refused_new::refused(), 1U);
          EXPECT_EQ(mine.receive_message().content, sent);
        });
        p.begin(0, [&] {
          endpoint mine;
          while (!to) p.pause(100'000);
          transfer sends =
              is_offered ? mine.start_synchronous_send(to, 1, sent) : mine.start_send(to, 1, sent);
          sends.wait();
        });
        p.run();
      }
    }
  }
}

// By a gateway, or by who sends around a connection that has ended, and has no memory for what it
// keeps of them: nobody else would send them again, nor hear of it.
void send_by_node_1(std::uint64_t seed, const cluster::routes::link_cost& links, bool goes_around,
                    std::size_t refused) {
  constexpr node_id nodes = 3;
  const auto content = [](int i) { return std::vector<std::byte>(by_others_bytes, std::byte(i)); };
  program_job p(seed, {.nodes = nodes, .links = links});
  endpoint_id to;
  p.begin(2, [&] {
    endpoint mine;
    to = mine.id();
    for (int i = 0; i < 3; ++i) EXPECT_EQ(mine.receive_message().content, content(i));
  });
  p.begin(0, [&] {
    endpoint mine;
    while (!to) p.pause(100'000);
    if (goes_around) p.job->tear(0, 2);
    mine.send(to, 1, content(0));
    p.job->node(0).pause(300'000);
    mine.send(to, 1, content(1));
    {
      const refused_new first_try(refused, refused, 1);
      while (refused_new::refused() == 0) p.pause(100'000);
    }
    mine.send(to, 1, content(2));
  });
  p.run();
  std::uint64_t sent = 0, received = 0;
  const auto is_even = [&] {
    sent = received = 0;
    for (node_id n = 0; n < nodes; ++n) {
      sent += p.job->node(n).protocols.counts.sent;
      received += p.job->node(n).protocols.counts.received;
    }
    return sent == received;
  };
  EXPECT_TRUE(p.world.run(is_even, p.now_ns() + 1'000 * program_job::ms))
      << sent << " sent, " << received << " received";
}

TEST(simulated_without_memory, messages_by_other_nodes_are_not_lost) {
  const auto row = [](node_id a, node_id b) -> std::optional<std::int64_t> {
    return a + 1 == b || b + 1 == a ? std::optional<std::int64_t>(1) : std::nullopt;
  };
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    send_by_node_1(seed, row, false, sizeof(cluster::forwarded_head) + by_others_kept);
  }
}

TEST(simulated_without_memory, messages_around_a_connection_are_not_lost) {
  const auto all = [](node_id, node_id) { return std::optional<std::int64_t>(1); };
  constexpr std::size_t head = sizeof(cluster::detour_words::head) + 2 * sizeof(node_id);
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    send_by_node_1(seed, all, true, head + by_others_kept);
  }
}

// What comes by a new way before its turn.
TEST(simulated_without_memory, messages_before_their_turn_are_not_lost) {
  constexpr std::uint32_t table = 1;
  cluster::succession others(2);
  others.await(1, true, table);
  const std::vector<std::byte> payload(by_others_kept);
  {
    const refused_new first_try(by_others_kept, by_others_kept, 1);
    EXPECT_TRUE(others.keeps(1, table, cluster::kind::message, payload));
    EXPECT_EQ(refused_new::refused(), 1U);
  }
  EXPECT_EQ(others.ended(1).size(), 1U);
}

// Large ones that the network moves: where they are expected, and where they are given.
TEST(simulated_without_memory, messages_move_in_the_end) {
  constexpr std::size_t in_tree = 4 * sizeof(void*);
  constexpr std::size_t expected =
      in_tree + sizeof(std::pair<const std::pair<node_id, std::uint64_t>, std::span<std::byte>>);
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    for (const bool by_giver : {false, true}) {
      program_job p(seed, {.nodes = 2, .transfer_bytes_min = 50'000});
      const std::vector<std::byte> sent(large, std::byte{6});
      endpoint_id to;
      bool is_offered = false;
      std::optional<refused_new> first_try;
      p.job->node(1).hears = [&](node_id, cluster::kind k, std::span<const std::byte>) {
        is_offered |= k == cluster::kind::offer;
        return false;
      };
      p.job->node(0).hears = [&](node_id, cluster::kind k, std::span<const std::byte>) {
        if (by_giver && k == cluster::kind::pull) first_try.emplace(1, SIZE_MAX, 1);
        return false;
      };
      p.begin(1, [&] {
        endpoint mine;
        to = mine.id();
        while (!is_offered) p.pause(100'000);
        std::vector<std::byte> content(large);
        if (!by_giver) first_try.emplace(expected, expected, 1);
        EXPECT_EQ(mine.receive(content).bytes, large);
        EXPECT_EQ(refused_new::refused(), 1U);
        EXPECT_EQ(content, sent);
      });
      p.begin(0, [&] {
        endpoint mine;
        while (!to) p.pause(100'000);
        mine.send(to, 1, sent);
      });
      p.run();
      EXPECT_EQ(p.job->node(1).messenger.counted().moved, 1U);
    }
  }
}

// They are matched already, and nobody else would fetch them.
TEST(simulated_without_memory, messages_that_a_task_fetches_wait_for_room_in_its_queue) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    program_job p(seed, {.nodes = 2});
    const std::vector<std::byte> sent(large, std::byte{8});
    endpoint_id to;
    unsigned refused = 0;
    p.job->node(1).hears = [&](node_id, cluster::kind k, std::span<const std::byte>) {
      if (k != cluster::kind::offer) return false;
      p.job->node(1).queues = [&] {
        p.job->node(1).queues = {};
        ++refused;
        throw std::bad_alloc();
      };
      return false;
    };
    p.begin(1, [&] {
      endpoint mine;
      to = mine.id();
      EXPECT_EQ(mine.receive_message().content, sent);
    });
    p.begin(0, [&] {
      endpoint mine;
      while (!to) p.pause(100'000);
      mine.send(to, 1, sent);
    });
    p.run();
    EXPECT_EQ(refused, 1U);
  }
}

// Whatever they wait for: a message, its match, or room.
TEST(simulated_without_memory, who_waits_for_a_node_hears_of_its_end) {
  for (const bool is_lost : {false, true}) {
    SCOPED_TRACE(is_lost ? "lost" : "left");
    program_job p(1, {.nodes = 2});
    messages::messenger& waits = p.job->node(0).messenger;
    endpoint_id to;
    bool has_ended = false;
    // What it is offered it never hears of, as it is gone.
    p.job->node(1).hears = [](node_id, cluster::kind k, std::span<const std::byte>) {
      return k == cluster::kind::offer;
    };
    p.begin(1, [&] {
      endpoint mine;
      to = mine.id();
      while (!has_ended) p.pause(100'000);
    });
    p.begin(0, [&] {
      endpoint mine;
      while (!to) p.pause(100'000);
      std::array<std::array<std::byte, 4>, 20> rooms;
      std::vector<transfer> receives, are_offered, want_room;
      for (auto& room : rooms) {
        receives.push_back(mine.start_receive(room, to));
        are_offered.push_back(mine.start_synchronous_send(to, 1, room));
      }
      const std::vector<std::byte> content(messages::eager_bytes_max);
      for (std::size_t sent = 0; sent < 2 * messages::window_bytes; sent += content.size())
        want_room.push_back(mine.start_send(to, 1, content));
      std::erase_if(want_room, [](const transfer& t) { return t.test(); });
      EXPECT_GE(want_room.size(), rooms.size());
      const std::exception_ptr loss = std::make_exception_ptr(node_lost_error(1, "it is gone"));
      {
        const refused_new nothing(1);
        if (is_lost) {
          waits.on_lost(loss);
        } else {
          waits.on_left(1);
        }
      }
      has_ended = true;
      for (transfer& t : receives) EXPECT_THROW(t.wait(), node_lost_error);
      for (std::vector<transfer>* const sends : {&are_offered, &want_room}) {
        for (transfer& t : *sends) {
          ASSERT_TRUE(t.test());
          if (is_lost) {
            EXPECT_THROW(t.wait(), node_lost_error);
          } else {
            EXPECT_THROW(t.wait(), endpoint_closed_error);
          }
        }
      }
    });
    p.run();
  }
}

// Those that wait in this process for each other as well.
TEST(simulated_without_memory, who_waits_within_a_node_hears_of_a_loss) {
  program_job p(1, {.nodes = 2});
  p.begin(0, [&] {
    endpoint mine, is_full;
    std::array<std::array<std::byte, 4>, 20> rooms;
    std::vector<transfer> in_vain;
    for (auto& room : rooms) {
      in_vain.push_back(mine.start_receive(room));
      in_vain.push_back(mine.start_synchronous_send(is_full.id(), 1, room));
    }
    const std::exception_ptr loss = std::make_exception_ptr(node_lost_error(1, "it is gone"));
    {
      const refused_new nothing(1);
      p.job->node(0).messenger.on_lost(loss);
    }
    for (transfer& t : in_vain) EXPECT_THROW(t.wait(), node_lost_error);
  });
  p.run();
}

// As the account of its node gets full: from then on what is waited for comes only if it is sought.
TEST(simulated_without_memory, what_is_waited_for_is_sought) {
  constexpr message_tag others = 1, wanted = 2;
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    for (const std::size_t refused : {sizeof(messages::sought_pattern), sizeof(messages::search)}) {
      program_job p(seed, {.nodes = 2});
      std::size_t taken = 0;
      std::optional<refused_new> first_try;
      p.job->node(1).hears = [&](node_id, cluster::kind k, std::span<const std::byte> payload) {
        if (k != cluster::kind::message) return false;
        taken += payload.size() - sizeof(messages::message_head) + messages::charge_for_message;
        if (taken >= messages::full_bytes && !first_try) first_try.emplace(refused, refused, 1);
        return false;
      };
      endpoint_id to;
      p.begin(1, [&] {
        endpoint mine;
        to = mine.id();
        EXPECT_EQ(mine.receive_value<int>(any_endpoint, wanted), 7);
        EXPECT_EQ(refused_new::refused(), 1U);
      });
      p.begin(0, [&] {
        endpoint mine;
        while (!to) p.pause(100'000);
        const std::vector<std::byte> content(messages::eager_bytes_max);
        std::vector<transfer> sends;
        // All the room there is, and what is left for envelopes.
        for (std::size_t left = messages::content_window_bytes; left != 0;) {
          const std::size_t n = std::min(content.size(), left - messages::charge_for_message);
          sends.push_back(mine.start_send(to, others, std::span(content).first(n)));
          left -= n + messages::charge_for_message;
        }
        while (!first_try) p.pause(100'000);
        for (std::size_t n = messages::reserve_bytes / messages::charge_for_message; n != 0; --n)
          sends.push_back(mine.start_synchronous_send(to, others, {}));
        mine.send_value(to, wanted, 7);
        EXPECT_THROW(wait_all(sends), endpoint_closed_error);
      });
      p.run();
    }
  }
}

}  // namespace
}  // namespace strata::test
