// SPDX-License-Identifier: Apache-2.0
// Large messages that are received whatever their size: the memory for them is written to, which
// takes long, and so by a task, while who handles messages goes on.
#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "messages/messenger.hpp"
#include "sim/simulated_job.hpp"
#include "support.hpp"

namespace strata::test {
namespace {

using messages::action;
using messages::port;
using messages::request;

constexpr std::size_t never_seen = SIZE_MAX;

// Of a receive that waits, as a message of that size is offered: what it has when that was handled.
std::size_t room_when_handled(std::uint64_t seed, std::size_t bytes) {
  sim::world world({.jitter_ns = 20'000}, seed);
  sim::job job(world, {.nodes = 2});
  messages::messenger& here = job.node(0).messenger;
  messages::messenger& there = job.node(1).messenger;
  port& from = here.open();
  port& to = there.open();
  const endpoint_id source = from.id, target = to.id;
  std::vector<std::byte> content;
  request receives;
  receives.what = action::receive;
  receives.messenger = &there;
  receives.mine = &to;
  receives.whole = &content;
  receives.info.target = target;
  there.receive(receives);
  std::vector<std::byte> sent(bytes);
  for (std::size_t i = 0; i < bytes; ++i) sent[i] = static_cast<std::byte>(i * 7 + i / 999);
  request sends;
  sends.what = action::send;
  sends.messenger = &here;
  sends.mine = &from;
  sends.from = sent;
  sends.info = {source, target, 1, bytes};
  world.at(1000, [&] { here.send(sends); });
  std::size_t seen = never_seen;
  job.node(1).hears = [&](net::node_id, cluster::kind k, std::span<const std::byte>) {
    // Behind the handler, and before the task that it may leave.
    if (k == cluster::kind::offer) world.at(world.now_ns(), [&] { seen = content.size(); });
    return false;
  };
  EXPECT_TRUE(world.run([&] { return sends.is_done() && receives.is_done(); }, 10'000'000'000));
  EXPECT_EQ(receives.result().bytes, bytes);
  EXPECT_TRUE(std::ranges::equal(content, sent));
  here.close(source, from);
  there.close(target, to);
  EXPECT_EQ(job.failure(), nullptr);
  return seen;
}

TEST(simulated_large_receives, have_no_memory_written_to_by_who_handles_messages) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    EXPECT_EQ(room_when_handled(seed, 1'000'000), 0U);
    EXPECT_EQ(room_when_handled(seed, 20'000), 20'000U) << "little enough for it";
  }
}

}  // namespace
}  // namespace strata::test
