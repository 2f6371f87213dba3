// SPDX-License-Identifier: Apache-2.0
// Groups of simulated nodes where memory runs out: no member keeps the others waiting.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <new>
#include <optional>
#include <span>
#include <stdexcept>
#include <vector>

#include "../common/refused_new.hpp"
#include "messages/groups/member.hpp"
#include "messages/messenger.hpp"
#include "program_job.hpp"
#include "strata/group.hpp"
#include "strata/message.hpp"
#include "unreadable_on.hpp"

namespace strata::test {
namespace {

using net::node_id;

// What it has begun to receive does not come any more where its caller's memory is gone.
TEST(simulated_without_memory, members_leave_with_what_they_wait_for) {
  struct sizes {
    std::size_t least, most;
  };
  // For what it sends, a lane; and for its wait for two receives, the first of them.
  constexpr sizes lane{sizeof(messages::lane), sizeof(messages::lane) + 24}, one{8, 8};
  for (const sizes& refused : {lane, one}) {
    for (const std::uint64_t seed : seeds()) {
      STRATA_WITH_SEED(seed);
      program_job p(seed, {.nodes = 2});
      std::array<endpoint_id, 2> all;
      const auto exchange = [&](unsigned rank) {
        const unsigned other = 1 - rank;
        endpoint mine;
        all[rank] = mine.id();
        while (!all[other]) p.pause(100'000);
        messages::member me(mine, {all.begin(), all.end()});
        me.perform(messages::operation::barrier, 0, [&] {
          int value = 0;
          std::optional<refused_new> little;
          if (rank == 0) little.emplace(refused.least, refused.most, 1);
          // It need not wait for what has come already. What it has sent before it left the other
          // one may have received, and hears of it in the next exchange.
          const unsigned exchanges = 8 + rank;
          try {
            for (unsigned i = 0; i < exchanges; ++i) {
              value = 0;
              me.exchange(other, bytes_of(7), other, std::as_writable_bytes(std::span(&value, 1)));
            }
          } catch (const std::bad_alloc&) {
            const int came_before = value;
            p.pause(20 * program_job::ms);
            EXPECT_EQ(value, came_before) << "it has come nevertheless";
            throw;
          }
        });
      };
      p.begin(0, [&] { EXPECT_THROW(exchange(0), std::bad_alloc); });
      p.begin(1, [&] { EXPECT_THROW(exchange(1), member_left_error); });
      p.run();
    }
  }
}

// The first it cannot tell at once, or has told already when it cannot tell the second.
TEST(simulated_without_memory, members_tell_all_others_that_they_leave) {
  constexpr unsigned members = 3;
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    for (const bool is_first : {false, true}) {
      program_job p(seed, {.nodes = members});
      std::array<endpoint_id, members> all;
      std::optional<refused_new> untold;
      const auto refuse = [&] {
        if (!untold) untold.emplace(sizeof(messages::request), sizeof(messages::request), 1);
      };
      const auto meet = [&](unsigned rank) {
        endpoint mine;
        all[rank] = mine.id();
        while (std::count(all.begin(), all.end(), endpoint_id()) != 0) p.pause(100'000);
        messages::member me(mine, {all.begin(), all.end()});
        me.perform(messages::operation::barrier, 0, [&] {
          if (rank == 0) {
            if (is_first) refuse();
            p.job->node(0).says = [&](node_id, cluster::kind k) {
              if (k == cluster::kind::message) refuse();
            };
            throw std::runtime_error("it has had enough");
          }
          me.meet();
        });
      };
      p.begin(0, [&] {
        EXPECT_THROW(meet(0), std::runtime_error);
        EXPECT_EQ(refused_new::refused(), 1U);
        p.job->node(0).says = {};
      });
      for (unsigned rank = 1; rank < members; ++rank) {
        p.begin(static_cast<node_id>(rank),
                [&, rank] { EXPECT_THROW(meet(rank), member_left_error); });
      }
      p.run();
    }
  }
}

// While they make a group of their list: whoever has begun says all that others wait for.
TEST(simulated_without_memory, members_that_name_each_other_keep_nobody_waiting) {
  constexpr unsigned members = 3;
  unsigned refused_in_all = 0;
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    for (const unsigned times : {1U, 2U, 3U}) {
      program_job p(seed, {.nodes = members});
      std::array<endpoint_id, members> all;
      std::optional<refused_new> refused;
      p.job->node(0).hears = [&](node_id, cluster::kind k, std::span<const std::byte>) {
        if (k == cluster::kind::message && !refused)
          refused.emplace(sizeof(messages::request), sizeof(messages::request), times);
        return false;
      };
      const auto join = [&](unsigned rank) {
        endpoint mine;
        all[rank] = mine.id();
        while (std::count(all.begin(), all.end(), endpoint_id()) != 0) p.pause(100'000);
        const group together(mine, {all.begin(), all.end()});
        EXPECT_EQ(together.size(), members);
      };
      for (unsigned rank = 0; rank < members; ++rank)
        p.begin(static_cast<node_id>(rank), [&, rank] { join(rank); });
      p.run();
      refused_in_all += refused_new::refused();
    }
  }
  EXPECT_GT(refused_in_all, 0U);
}

// Who keeps its group, and has not begun the operation that the others wait in.
TEST(simulated_without_memory, members_without_room_for_a_result_leave_their_group) {
  constexpr unsigned members = 3;
  struct large_value {
    std::array<std::byte, 5000> bytes{};
  };
  using large_parts = std::array<std::vector<int>, members>;
  constexpr std::size_t largest_list = 4 * sizeof(std::span<const std::byte>);  // of `members`
  struct operation {
    void (*call)(group& g);
    std::size_t bytes;
  };
  const std::array<operation, 3> operations{
      {{[](group& g) { (void)g.all_gather(large_value()); }, members * sizeof(large_value)},
       {[](group& g) { (void)g.gather(large_value(), 0); }, members * sizeof(large_value)},
       {[](group& g) { (void)g.all_to_all_any(large_parts()); }, largest_list}}};
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    for (const auto& [call, bytes] : operations) {
      program_job p(seed, {.nodes = members});
      std::array<endpoint_id, members> all;
      unsigned told = 0;
      const auto take_part = [&, call = call, bytes = bytes](unsigned rank) {
        endpoint mine;
        all[rank] = mine.id();
        while (std::count(all.begin(), all.end(), endpoint_id()) != 0) p.pause(100'000);
        group g(mine, {all.begin(), all.end()});
        if (rank == 0) {
          std::optional<refused_new> none(std::in_place, bytes, bytes, 1);
          EXPECT_THROW(call(g), std::bad_alloc);
          EXPECT_EQ(refused_new::refused(), 1U);
          none.reset();
          while (told != members - 1) p.pause(100'000);
        } else {
          EXPECT_THROW(
              {
                call(g);
                g.barrier();  // a gather waits for the root alone
              },
              member_left_error);
          ++told;
        }
      };
      for (unsigned rank = 0; rank < members; ++rank)
        p.begin(static_cast<node_id>(rank), [take_part, rank] { take_part(rank); });
      p.run();
    }
  }
}

void add_up(const std::vector<node_id_t>& nodes) {
  detail::run_group_on(nodes, 2, [](group& all) {
    EXPECT_EQ(all.all_reduce(1U, std::plus<>()), all.size());
    EXPECT_EQ(all.members()[all.rank()], this_thread::endpoint().id());
  });
}

// Before it is there, and when it has been told of all others.
TEST(simulated_without_memory, members_of_a_job_that_have_none_keep_nobody_waiting) {
  const std::vector<node_id_t> nodes{0, 1, 2, 3};
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    for (const cluster::kind when : {cluster::kind::invoke, cluster::kind::message}) {
      program_job p(seed, {.nodes = 4});
      std::optional<refused_new> once;
      p.begin(0, [&] {
        add_up(nodes);
        p.job->node(1).hears = [&](node_id from, cluster::kind k, std::span<const std::byte>) {
          if (from == 0 && k == when && !once)
            once.emplace(sizeof(messages::request), sizeof(messages::request), 1);
          return false;
        };
        try {
          add_up(nodes);  // something else may have asked for as much
        } catch (const std::bad_alloc&) {
        } catch (const remote_error& e) {
          EXPECT_EQ(e.type_name(), "std::bad_alloc") << e.what();
        }
        EXPECT_EQ(refused_new::refused(), 1U);
        add_up(nodes);
      });
      p.run();
    }
  }
}

// Whose call has ended is said by a thread that nobody could tell of a failure, to one that others
// wait for.
TEST(simulated_without_memory, nodes_that_cannot_begin_a_group_keep_nobody_waiting) {
  const std::vector<node_id_t> nodes{0, 1, 2, 3};
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    program_job p(seed, {.nodes = 4});
    p.begin(0, [&] {
      {
        detail::group_launch launch(1);
        launch.add(0, [] { return remote_thread(); });
        const refused_new to_wait_there(sizeof(messages::arrival), sizeof(messages::arrival), 1);
        p.pause(program_job::ms);
        EXPECT_EQ(refused_new::refused(), 1U);
        launch.finish();
      }
      std::optional<refused_new> to_be_received;
      p.job->node(0).hears = [&](node_id from, cluster::kind k, std::span<const std::byte>) {
        if (from == 2 && k == cluster::kind::returned)
          p.world.at(p.now_ns(),
                     [&] { to_be_received.emplace(sizeof(node_id_t), sizeof(node_id_t), 1); });
        return false;
      };
      try {
        detail::run_group_on(
            nodes, 2, [](group&, const unreadable_on&) { ADD_FAILURE() << "it has begun"; },
            unreadable_on{2});
        ADD_FAILURE() << "its arguments can be read";
      } catch (const remote_error& e) {
        EXPECT_EQ(e.type_name(), "strata::serialization_error") << e.what();
      }
      EXPECT_EQ(refused_new::refused(), 1U);
      p.job->node(0).hears = {};
      add_up(nodes);
    });
    p.run();
  }
}

// There will never be any for so many.
TEST(simulated_without_memory, more_members_than_can_be_listed_are_refused) {
  constexpr unsigned threads = 50;
  const std::vector<node_id_t> nodes{0, 1, 2, 3};
  const std::size_t list_bytes = nodes.size() * threads * 2 * sizeof(endpoint_id);
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    program_job p(seed, {.nodes = 4});
    p.begin(0, [&] {
      {
        const refused_new list(list_bytes, list_bytes);
        EXPECT_THROW(
            detail::run_group_on(nodes, threads, [](group&) { ADD_FAILURE() << "it has begun"; }),
            std::bad_alloc);
        EXPECT_EQ(refused_new::refused(), 1U);
      }
      add_up(nodes);
    });
    p.run();
  }
}

}  // namespace
}  // namespace strata::test
