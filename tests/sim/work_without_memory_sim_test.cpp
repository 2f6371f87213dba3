// SPDX-License-Identifier: Apache-2.0
// Tokens and items for mailboxes where memory runs out: whoever cannot take in what is large says
// so, and nothing waits for it for ever.
#include <cereal/types/string.hpp>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "../common/refused_new.hpp"
#include "messages/messenger.hpp"
#include "program_job.hpp"
#include "strata/fiber.hpp"
#include "strata/mailbox.hpp"
#include "strata/remote_thread.hpp"
#include "strata/serialize.hpp"
#include "without_memory.hpp"

namespace strata::test {
namespace {

using net::node_id;

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

int seven() { return 7; }
int nothing_there() { throw std::domain_error("there is nothing"); }

// A value, and what was thrown. Whoever waits for it is told by nobody else.
TEST(simulated_without_memory, answers_of_calls_come_in_the_end) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    program_job p(seed, {.nodes = 2});
    constexpr unsigned times = 3;
    unsigned asked = 0;
    p.job->node(1).says = [&](node_id, cluster::kind k) {
      if (k != cluster::kind::returned || ++asked % times == 0) return;
      throw std::bad_alloc();
    };
    p.begin(0, [&] {
      EXPECT_EQ(call<seven>(on_node{1}), 7);
      EXPECT_THROW((void)call<nothing_there>(on_node{1}), remote_error);
    });
    p.run();
    EXPECT_EQ(asked, 2 * times);
  }
}

// One that goes in pieces.
std::vector<std::byte> large_item() {
  std::vector<std::byte> item(large / 4);
  for (std::size_t i = 0; i < item.size(); ++i) item[i] = static_cast<std::byte>(i / 251);
  return item;
}

// Nor is whoever has sent it taken for lost, whose other pieces come all the same.
TEST(simulated_without_memory, large_items_are_dropped_as_a_whole) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    program_job p(seed, {.nodes = 2});
    const std::vector<std::byte> item = large_item();
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

// The first one from that node: there is no memory for noting who sends it.
TEST(simulated_without_memory, large_items_come_in_the_end) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    program_job p(seed, {.nodes = 2});
    const std::vector<std::byte> item = large_item();
    global_ptr<mailbox> where;
    std::optional<refused_new> once;
    p.job->node(1).hears = [&](node_id, cluster::kind k, std::span<const std::byte>) {
      if (k == cluster::kind::drop_in && !once) once.emplace(1, SIZE_MAX, 1);
      return false;
    };
    p.begin(1, [&] {
      mailbox box{slot_ptr()};
      where = to_global(&box);
      while (box.size() == 0) p.pause(100'000);
      std::vector<std::byte> come(item.size());
      EXPECT_EQ(retrieve_item(box, come.data(), come.size()), item.size());
      EXPECT_EQ(come, item);
    });
    p.begin(0, [&] {
      while (where.where().address() == nullptr) p.pause(100'000);
      drop_in(where, item.data(), item.size());
    });
    p.run([] { return true; }, 1'000 * p.ms);
    EXPECT_EQ(refused_new::refused(), 1U);
    EXPECT_TRUE(p.job->node(1).losses().empty());
  }
}

}  // namespace
}  // namespace strata::test
