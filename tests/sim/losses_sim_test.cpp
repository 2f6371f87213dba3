// SPDX-License-Identifier: Apache-2.0
// Once a simulated node is lost, whatever the program has for another one ends in the error that
// names it, also where the program waits for nothing.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "messages/messenger.hpp"
#include "messages/process_memory.hpp"
#include "program_job.hpp"
#include "strata/fiber.hpp"
#include "strata/mailbox.hpp"
#include "strata/message.hpp"
#include "strata/remote_thread.hpp"

namespace strata::test {
namespace {

using net::node_id;
using std::chrono::nanoseconds;

struct comes_and_goes : threaded {
  void start() { terminate(); }
};

// On the node that will be lost.
struct things_there {
  std::uint64_t word = 0;
  std::array<std::uint64_t, 30'000> block{};  // several messages
  completion often{1U << 30};
  node_id_t node = 0;
};

struct way_to_send {
  const char* what;
  void (*send)(things_there&);
};
std::uint64_t word_here = 0;
std::array<std::uint64_t, 30'000> block_here{};
constexpr std::array ways_to_send{
    way_to_send{"put",
                [](things_there& t) { put_sync(1, global_ptr(t.node, &t.word), slot_ptr()); }},
    way_to_send{
        "get",
        [](things_there& t) { get_sync(global_ptr(t.node, &t.word), &word_here, slot_ptr()); }},
    way_to_send{"block",
                [](things_there& t) {
                  block_move_sync(to_global(block_here.data()), global_ptr(t.node, t.block.data()),
                                  block_here.size(), slot_ptr());
                }},
    way_to_send{"signal", [](things_there& t) { sync(slot_ptr(t.node, &t.often)); }},
    way_to_send{"increment", [](things_there& t) { incr_sync(slot_ptr(t.node, &t.often), 1); }},
    way_to_send{"invoke", [](things_there& t) { invoke<comes_and_goes>(t.node); }},
    way_to_send{"call", [](things_there& t) { call<[] {}>(on_node{t.node}); }},
};

TEST(simulated_losses, are_heard_of_by_who_only_sends) {
  constexpr node_id nodes = 3;
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    const sim::job_model model{
        .nodes = nodes, .lost_after_ns = 30 * program_job::ms, .breaks_off = true};
    program_job p(seed, model, program_job::disorderly);
    const auto there = std::make_unique<things_there>();
    there->node = static_cast<node_id>(p.below(nodes));
    const auto lost_ns = program_job::ms + static_cast<std::int64_t>(p.below(5 * program_job::ms));
    const std::int64_t told_ns = lost_ns + 2 * model.lost_after_ns;
    for (node_id n = 0; n < nodes; ++n) {
      if (n == there->node) continue;
      for (const way_to_send& w : ways_to_send) {
        p.begin(n, [&] {
          bool told = false;
          while (!told && p.now_ns() <= told_ns + program_job::ms) {
            try {
              w.send(*there);
              p.pause(program_job::ms);
            } catch (const node_lost_error& e) {
              EXPECT_EQ(e.node(), there->node) << w.what;
              EXPECT_GE(p.now_ns(), lost_ns) << w.what;
              told = true;
            }
          }
          EXPECT_TRUE(told) << w.what;
          // And for ever after.
          EXPECT_THROW(w.send(*there), node_lost_error) << w.what;
        });
      }
    }
    p.world.at(lost_ns, [&] { p.job->node(there->node).crash(); });
    p.run();
  }
}

bool can_read_memory() {
  std::uint64_t seen = 0;
  const messages::process_mark mark = messages::own_mark();
  return messages::read_process(messages::own_process(), mark, mark.address, &seen, sizeof(seen));
}

// Where their sender has heard of a loss it uses the memory for something else; the other end hears
// of it then, later or before. It waits for the message, or comes when it is there.
TEST(simulated_losses, end_messages_that_are_still_with_their_sender) {
  if (!can_read_memory()) GTEST_SKIP() << "this machine lets no process read memory";
  constexpr node_id sender = 0, receiver = 1, lost = 2;
  constexpr unsigned waits = 4;  // besides who hears of it at once
  const std::exception_ptr loss = std::make_exception_ptr(node_lost_error(lost, "it is gone"));
  for (unsigned how = 0; how < 8; ++how) {
    const auto hears_at_once = [&](node_id n) { return (how >> n & 1U) != 0; };
    if (!hears_at_once(sender) && !hears_at_once(receiver)) continue;
    SCOPED_TRACE(std::string("a receive that ") + ((how & waits) != 0 ? "waits" : "comes") +
                 (hears_at_once(sender) ? ", its sender" : "") +
                 (hears_at_once(receiver) ? ", its receiver" : "") + " heard of it at once");
    program_job p(1, {.nodes = 3});
    p.job->node(receiver).messenger.on_coming(sender, true);
    std::vector<std::byte> content(std::size_t{1} << 20, std::byte{1});
    endpoint_id to;
    bool is_known = false;
    const auto break_off = [&](node_id n) {
      p.job->node(n).break_off(loss);
      if (n == sender) std::fill(content.begin(), content.end(), std::byte{2});
    };
    p.job->node(receiver).hears = [&](node_id, cluster::kind k, std::span<const std::byte>) {
      if (k != cluster::kind::offer) return false;
      // Behind the handler, and before the task that it may leave.
      p.world.at(p.now_ns(), [&] {
        is_known = true;
        for (const node_id n : {sender, receiver}) {
          if (hears_at_once(n)) {
            break_off(n);
          } else {
            p.world.at(p.now_ns() + program_job::ms, [&, n] { break_off(n); });
          }
        }
      });
      return false;
    };
    p.begin(sender, [&] {
      endpoint mine;
      while (!to) p.pause(100'000);
      EXPECT_THROW(mine.send(to, 1, content), node_lost_error);
    });
    p.begin(receiver, [&] {
      endpoint mine;
      to = mine.id();
      while ((how & waits) == 0 && !is_known) p.pause(100'000);
      EXPECT_THROW((void)mine.receive_message(), node_lost_error);
      EXPECT_TRUE(is_known);
    });
    p.run();
  }
}

// It is no mistake of the program.
TEST(simulated_losses, are_what_becomes_of_who_sends_nonsense) {
  sim::world world({}, 1);
  sim::job job(world, {.nodes = 2});
  job.node(0).post(1, cluster::kind::steal, {}, {});
  ASSERT_TRUE(world.run([&] { return !job.node(1).losses().empty(); }, 10'000'000));
  EXPECT_EQ(job.node(1).losses().begin()->first, 0);
  EXPECT_EQ(job.failure(), nullptr);
}

}  // namespace
}  // namespace strata::test
