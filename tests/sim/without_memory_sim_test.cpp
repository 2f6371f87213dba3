// SPDX-License-Identifier: Apache-2.0
// Simulated nodes where memory runs out: whoever cannot take in what is large says so, and nothing
// waits for it for ever.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <new>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "../common/refused_new.hpp"
#include "messages/groups/member.hpp"
#include "messages/messenger.hpp"
#include "program_job.hpp"
#include "strata/directory.hpp"
#include "strata/fiber.hpp"
#include "strata/group.hpp"
#include "strata/mailbox.hpp"
#include "strata/message.hpp"
#include "strata/serialize.hpp"
#include "unreadable_on.hpp"

namespace strata::test {
namespace {

using net::node_id;

constexpr std::size_t large = std::size_t{2} << 20;

unsigned texts_begun;
struct takes_large_text : threaded {
  std::string text;
  void start() {
    ++texts_begun;
    terminate();
  }
};

TEST(simulated_without_memory, arguments_that_nobody_can_take_do_not_keep_their_node) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    constexpr node_id nodes = 3, leaver = 2;
    program_job p(seed, {.nodes = nodes, .founders = nodes});
    p.cut_now_and_then(nodes);
    texts_begun = 0;
    std::optional<refused_new> little;
    p.begin(leaver, [&] {
      const std::string text(large, 't');
      for (unsigned i = 0; i < 4; ++i)
        invoke<takes_large_text>(static_cast<node_id_t>(i % 2), text);
      EXPECT_EQ(p.job->node(leaver).messenger.large_values->size(), 4U);
      little.emplace(large / 2 + 1);
      p.world.at(p.now_ns(), [&] { p.job->leave(leaver, [] {}); });
    });
    p.run([&] { return p.job->node(leaver).has_left(); });
    little.reset();
    EXPECT_EQ(texts_begun, 0U) << "there was memory";
    for (node_id n = 0; n < nodes; ++n)
      EXPECT_EQ(p.job->node(n).messenger.large_values->size(), 0U)
          << "of tokens that nobody begins";
  }
}

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

// Nor is whoever has sent it taken for lost, whose other pieces come all the same.
TEST(simulated_without_memory, large_items_are_dropped_as_a_whole) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    program_job p(seed, {.nodes = 2});
    std::vector<std::byte> item(large / 4);
    for (std::size_t i = 0; i < item.size(); ++i) item[i] = static_cast<std::byte>(i / 251);
    global_ptr<mailbox> where;
    bool settled = false;
    p.job->when_settled = [&] { settled = true; };
    std::optional<refused_new> once;
    p.job->node(1).hears = [&](node_id, cluster::kind k, std::span<const std::byte> payload) {
      // With what has come it needs as much again.
      if (k == cluster::kind::drop_in && !once) once.emplace(2 * payload.size() - 200, SIZE_MAX, 1);
      return false;
    };
    p.begin(1, [&] {
      mailbox box{slot_ptr()};
      where = to_global(&box);
      while (box.size() == 0) p.pause(100'000);
      std::vector<std::byte> come(item.size());
      EXPECT_EQ(retrieve_item(box, come.data(), come.size()), item.size());
      EXPECT_EQ(come, item);
      EXPECT_EQ(box.size(), 0U);
    });
    p.begin(0, [&] {
      while (where.where().address() == nullptr) p.pause(100'000);
      drop_in(where, item.data(), item.size());
      while (!settled) p.pause(100'000);
      drop_in(where, item.data(), item.size());
    });
    EXPECT_TRUE(p.world.run([&] { return p.threads() == 0; }, p.now_ns() + 1'000 * p.ms));
    EXPECT_EQ(refused_new::refused(), 1U);
    EXPECT_TRUE(p.job->node(1).losses().empty());
    ASSERT_NE(p.job->failure(), nullptr);
    EXPECT_THROW(std::rethrow_exception(p.job->failure()), std::bad_alloc);
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

// At home on node 0, and remembered by all: `withdraws` is called there, and what others have found
// of it then is returned, by node.
std::vector<std::optional<std::uint32_t>> found_after(program_job& p, const std::string& name,
                                                      const std::function<void()>& withdraws) {
  const auto nodes = static_cast<node_id>(p.job->size());
  EXPECT_EQ(p.job->node(0).messenger.home_of(std::hash<std::string>()(name)), 0U);
  std::vector<std::optional<std::uint32_t>> found(nodes);
  node_id know = 0;
  bool is_withdrawn = false;
  p.begin(0, [&] {
    publish(name, std::uint32_t{7});
    while (know != nodes - 1) p.pause(100'000);
    withdraws();
    is_withdrawn = true;
  });
  for (node_id n = 1; n < nodes; ++n) {
    p.begin(n, [&, n] {
      EXPECT_EQ(await_name<std::uint32_t>(name), 7U);
      ++know;
      while (!is_withdrawn) p.pause(100'000);
      found[n] = find_name<std::uint32_t>(name);
    });
  }
  p.run();
  return found;
}
// Of more bytes than a string has room for in itself.
std::string long_name_at_home(program_job& p) {
  std::string name = "a name that is at home on the first node";
  while (p.job->node(0).messenger.home_of(std::hash<std::string>()(name)) != 0) name += '+';
  return name;
}

TEST(simulated_without_memory, names_are_forgotten_wherever_that_can_be_said) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    program_job p(seed, {.nodes = 4});
    constexpr node_id untold = 1;
    const auto found = found_after(p, long_name_at_home(p), [&] {
      p.job->node(0).says = [](node_id to, cluster::kind k) {
        if (to == untold && k == cluster::kind::invoke) throw std::bad_alloc();
      };
      EXPECT_THROW((void)withdraw(long_name_at_home(p)), std::bad_alloc);
      p.job->node(0).says = {};
    });
    for (node_id n = untold + 1; n < found.size(); ++n) EXPECT_FALSE(found[n]) << "by node " << n;
  }
}

TEST(simulated_without_memory, names_are_forgotten_in_the_end) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    program_job p(seed, {.nodes = 4});
    const std::string name = long_name_at_home(p);
    std::optional<refused_new> first_try;
    const auto found = found_after(p, name, [&] {
      p.job->node(1).hears = [&](node_id, cluster::kind k, std::span<const std::byte>) {
        if (k == cluster::kind::invoke && !first_try)
          first_try.emplace(name.size() + 1, name.size() + 1, 1);
        return false;
      };
      EXPECT_TRUE(withdraw(name));
      EXPECT_EQ(refused_new::refused(), 1U);
    });
    for (node_id n = 1; n < found.size(); ++n) EXPECT_FALSE(found[n]) << "by node " << n;
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

}  // namespace
}  // namespace strata::test
