// SPDX-License-Identifier: Apache-2.0
// Simulated nodes where memory runs out: whoever cannot take in what is large says so, and nothing
// waits for it for ever.
#include <cereal/types/string.hpp>
#include <cstddef>
#include <optional>
#include <string>

#include "../common/refused_new.hpp"
#include "messages/messenger.hpp"
#include "program_job.hpp"
#include "strata/fiber.hpp"
#include "strata/serialize.hpp"

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
      EXPECT_EQ(p.job->node(leaver).messenger.parcels->size(), 4U);
      little.emplace(large / 2 + 1);
      p.world.at(p.now_ns(), [&] { p.job->leave(leaver, [] {}); });
    });
    p.run([&] { return p.job->node(leaver).has_left(); });
    little.reset();
    EXPECT_EQ(texts_begun, 0U) << "there was memory";
    for (node_id n = 0; n < nodes; ++n)
      EXPECT_EQ(p.job->node(n).messenger.parcels->size(), 0U) << "of tokens that nobody begins";
  }
}

}  // namespace
}  // namespace strata::test
