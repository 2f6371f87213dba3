// SPDX-License-Identifier: Apache-2.0
// Messages between simulated nodes whose receiver ends, or whose node leaves: those who wait are
// told, whoever sends or receives, and nothing is counted twice.
#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "messages/messenger.hpp"
#include "sim/simulated_job.hpp"
#include "support.hpp"

namespace strata::test {
namespace {

using messages::action;
using messages::port;
using messages::request;

// Messages on their way to an endpoint that ends: those that wait are told, and how it ended;
// nothing hangs, nothing is counted twice.
void refuse_messages(std::uint64_t seed, messages::outcome how) {
  const sim::network_model network{.jitter_ns = 20'000, .loss = 0.05};
  sim::world world(network, seed);
  sim::job_model model;
  sim::job job(world, model);
  messages::messenger& here = job.node(0).messenger;
  messages::messenger& there = job.node(1).messenger;
  port& from = here.open();
  port& to = there.open();
  const endpoint_id source = from.id, target = to.id;
  const std::vector<std::byte> content(5000);
  std::vector<std::unique_ptr<request>> sends;
  for (int i = 0; i < 2000; ++i) {
    sends.push_back(std::make_unique<request>());
    request& r = *sends.back();
    r.what = i % 100 == 99 ? action::send_synchronously : action::send;
    r.messenger = &here;
    r.mine = &from;
    r.from = content;
    r.info = {source, target, 0, content.size()};
    world.at(static_cast<std::int64_t>(world.random.next() % 3'000'000), [&] { here.send(r); });
  }
  world.at(1'000'000 + static_cast<std::int64_t>(world.random.next() % 1'000'000), [&] {
    there.close(target, to, how);
    // What has its place from now on is somebody else.
    EXPECT_EQ(&there.open(), &to);
  });
  EXPECT_FALSE(world.run([] { return false; }));
  int refused = 0;
  for (const auto& r : sends) {
    ASSERT_TRUE(r->is_done());
    try {
      (void)r->result();
    } catch (const endpoint_closed_error& e) {
      EXPECT_EQ(e.which(), target);
      EXPECT_EQ(dynamic_cast<const messages::announced_end*>(&e) != nullptr,
                how == messages::outcome::announced);
      ++refused;
    }
  }
  // 256 KiB hold 51; the others waited.
  EXPECT_GE(refused, 1900);
  EXPECT_EQ(job.node(0).protocols.counts.sent + job.node(1).protocols.counts.sent,
            job.node(0).protocols.counts.received + job.node(1).protocols.counts.received);
  here.close(source, from);
  there.close(to.id, to);
  EXPECT_EQ(job.failure(), nullptr);
}

TEST(simulated_messages, to_an_end_are_refused) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    refuse_messages(seed, messages::outcome::closed);
    refuse_messages(seed, messages::outcome::announced);
  }
}

// Its end is told for each message that comes too late, and its name forgotten after those of many
// others; who sends there once more while all that happens hears so in the end.
void end_many_times(std::uint64_t seed) {
  sim::world world({.jitter_ns = 20'000, .loss = 0.02}, seed);
  sim::job job(world, {});
  messages::messenger& here = job.node(0).messenger;
  messages::messenger& there = job.node(1).messenger;
  port& from = here.open();
  const endpoint_id source = from.id;
  const std::vector<std::byte> content(5000);
  const auto ended = [&] {
    port& p = there.open();
    const endpoint_id id = p.id;
    there.close(id, p);
    return id;
  };
  std::deque<request> sends;
  const auto send = [&](endpoint_id target) {
    request& r = sends.emplace_back();
    r.what = action::send;
    r.messenger = &here;
    r.mine = &from;
    r.from = content;
    r.info = {source, target, 0, content.size()};
    here.send(r);
  };
  const auto settle = [&] { EXPECT_FALSE(world.run([] { return false; })); };
  const endpoint_id target = ended();
  send(target);
  send(target);
  settle();
  // As many as are remembered, at one place each after the other: so they are kept together.
  for (int i = 0; i < 1023; ++i) {
    send(ended());
    settle();
  }
  send(ended());
  send(target);
  settle();
  std::size_t begun = sends.size();
  // More than there is room for.
  for (int i = 0; i < 100; ++i) {
    send(target);
    if (i % 10 == 0) settle();
  }
  settle();
  for (; begun < sends.size() && sends[begun].is_done(); ++begun) {
  }
  EXPECT_EQ(begun, sends.size()) << "it waits for room that nobody gives";
  if (sends.back().is_done()) {
    EXPECT_THROW((void)sends.back().result(), endpoint_closed_error);
  } else {
    for (request& r : sends) (void)here.cancel(r);
  }
  here.close(source, from);
  EXPECT_EQ(job.failure(), nullptr);
}

TEST(simulated_messages, to_an_end_that_is_told_many_times_are_refused) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    end_many_times(seed);
  }
}

// What was under way there when its name was forgotten finds nothing, as of one that never was.
TEST(simulated_messages, what_comes_for_a_name_that_is_forgotten_does_no_harm) {
  sim::world world({}, 1);
  sim::job job(world, {});
  std::vector<cluster::kind> answers;
  job.node(0).says = [&](net::node_id, cluster::kind k) { answers.push_back(k); };
  messages::messenger& there = job.node(1).messenger;
  port& p = there.open();
  const std::uint64_t target = p.id.bits();
  there.close(p.id, p);
  const messages::room_head room{target, messages::give_back_bytes, 0, 1};
  job.node(0).handle(1, cluster::kind::room, std::as_bytes(std::span(&room, 1)));
  const struct {
    messages::seek_head head;
    messages::sought_pattern wanted;
  } seek{{target}, {0, 3}};
  job.node(0).handle(1, cluster::kind::seek, std::as_bytes(std::span(&seek, 1)));
  EXPECT_TRUE(answers.empty());
  EXPECT_EQ(job.node(0).protocols.counts.received, 2U);
}

// Who waits for what only a node can send that leaves is told so, and nobody else; what has come
// from there is there.
void wait_for_a_leaver(std::uint64_t seed) {
  const sim::network_model network{.jitter_ns = 20'000, .loss = 0.02};
  sim::world world(network, seed);
  sim::job job(world, {.nodes = 4, .founders = 3});
  messages::messenger& here = job.node(0).messenger;
  messages::messenger& stays = job.node(1).messenger;
  messages::messenger& leaves = job.node(2).messenger;
  port& to = here.open();
  port& staying = stays.open();
  port& leaving = leaves.open();
  const endpoint_id target = to.id, stayer = staying.id, leaver = leaving.id;

  std::deque<request> requests;
  std::array<std::byte, 4> bytes{};
  const auto send = [&](messages::messenger& messenger, port& from, message_tag tag) {
    request& r = requests.emplace_back();
    r.what = action::send;
    r.messenger = &messenger;
    r.mine = &from;
    r.from = bytes;
    r.info = {from.id, target, tag, bytes.size()};
    messenger.send(r);
  };
  const auto receive = [&](endpoint_id from, message_tag tag,
                           action what = action::receive) -> request& {
    request& r = requests.emplace_back();
    r.what = what;
    r.messenger = &here;
    r.mine = &to;
    r.into = bytes;
    r.wanted = {from, tag};
    r.info.target = target;
    here.receive(r);
    return r;
  };
  const auto expect_end = [](const request& r) {
    ASSERT_TRUE(r.is_done());
    try {
      (void)r.result();
      ADD_FAILURE() << "nobody sends";
    } catch (const node_lost_error& e) {
      EXPECT_EQ(e.node(), 2);
      EXPECT_STREQ(e.what(), "node 2 has left the job");
    }
  };

  request& of_anybody = receive(any_endpoint, 7);
  request& of_node = receive(any_endpoint_on(2), 7);
  request& of_endpoint = receive(leaver, 7);
  request& probes = receive(any_endpoint_on(2), any_tag, action::probe);
  request& of_other = receive(any_endpoint_on(1), any_tag);
  const std::string waits = here.describe_waits();
  for (const char* const one :
       {": 5 receives wait for a message (", "from any endpoint with tag 7",
        "from any endpoint of node 2 with tag 7", "from any endpoint of node 2 with any tag"})
    EXPECT_NE(waits.find(one), std::string::npos) << waits;
  request& of_comer = receive(any_endpoint_on(3), any_tag);

  send(leaves, leaving, 5);
  constexpr std::int64_t limit_ns = 10'000'000'000;
  EXPECT_TRUE(world.run([&] { return probes.is_done(); }, limit_ns));
  EXPECT_EQ(probes.result().source, leaver);
  bool left = false;
  leaves.close(leaver, leaving);
  job.leave(2, [&] { left = true; });
  EXPECT_TRUE(
      world.run([&] { return left && of_node.is_done() && of_endpoint.is_done(); }, limit_ns));
  expect_end(of_node);
  expect_end(of_endpoint);
  expect_end(receive(any_endpoint_on(2), 7));
  expect_end(receive(leaver, 7, action::probe));
  EXPECT_THROW((void)here.probe(to, target, {any_endpoint_on(2), 7}), node_lost_error);
  const request& was_sent = receive(any_endpoint_on(2), any_tag);
  EXPECT_TRUE(was_sent.is_done());
  EXPECT_EQ(was_sent.result().tag, 5U);

  EXPECT_FALSE(of_anybody.is_done());
  EXPECT_FALSE(of_other.is_done());
  EXPECT_FALSE(of_comer.is_done());
  send(stays, staying, 7);
  send(stays, staying, 8);
  EXPECT_TRUE(world.run([&] { return of_anybody.is_done() && of_other.is_done(); }, limit_ns));
  EXPECT_EQ(of_anybody.result().source, stayer);
  EXPECT_EQ(of_other.result().tag, 8U);
  EXPECT_TRUE(here.cancel(of_comer));
  EXPECT_EQ(job.failure(), nullptr);
  stays.close(stayer, staying);
  here.close(target, to);
}

TEST(simulated_messages, of_a_node_that_has_left_are_not_waited_for) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    wait_for_a_leaver(seed);
  }
}

}  // namespace
}  // namespace strata::test
