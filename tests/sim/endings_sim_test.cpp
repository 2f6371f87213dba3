// SPDX-License-Identifier: Apache-2.0
// What has ended is said to whoever uses it all the same: an endpoint, a name, an object with one,
// a node that has left or is lost. Each use ends in the error that says so, by a deadline of the
// simulated clock.
#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "expected_error.hpp"
#include "program_job.hpp"
#include "strata/directory.hpp"
#include "strata/domain.hpp"
#include "strata/remote_thread.hpp"
#include "strata/resource.hpp"
#include "strata/synchronizers.hpp"
#include "tasks.hpp"
#include "used_handle.hpp"

namespace strata::test {
namespace {

using net::node_id;
using std::chrono::nanoseconds;

// For a question and its answer, however often they are lost.
constexpr std::int64_t answered_within_ns = 100 * program_job::ms;

std::uint64_t sent_by(program_job& p, node_id n) { return p.job->node(n).protocols.counts.sent; }

// ---- endpoints ----

// However it is sent to. Messages that leave their sender at once may still be on their way when
// another one is sent; who waits for its target hears at once.
TEST(simulated_endings, of_endpoints_are_said_to_who_sends_there) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    constexpr node_id nodes = 3;
    program_job p(seed, {.nodes = nodes, .transfer_bytes_min = 200'000});
    std::array<endpoint_id, nodes> ended{};
    for (node_id n = 0; n < nodes; ++n) {
      p.begin(n, [&, n] {
        endpoint mine;
        p.pause(program_job::ms);
        ended[n] = mine.id();
      });
      p.begin(n, [&, n] {
        while (std::count(ended.begin(), ended.end(), endpoint_id()) != 0) p.pause(100'000);
        p.pause(program_job::ms);
        endpoint mine;
        const std::vector<std::byte> bytes(100'000 + p.below(200'000));
        for (const endpoint_id to : ended) {
          const auto whose = [to](const endpoint_closed_error& e) { return e.which() == to; };
          using closed = endpoint_closed_error;
          const auto send_in_vain = [&](std::size_t n_bytes) {
            for (;;) {
              mine.send(to, 0, std::span(bytes).first(n_bytes));
              this_thread::sleep_for(nanoseconds(100'000));
            }
          };
          const auto begin_by_turns = p.below(2);
          for (unsigned turn = 0; turn < 2; ++turn) {
            if (turn == begin_by_turns) {
              expect_error<closed>(
                  p, "send", answered_within_ns, [&] { send_in_vain(p.below(100)); }, whose);
              expect_error<closed>(
                  p, "large send", answered_within_ns, [&] { send_in_vain(bytes.size()); }, whose);
            } else {
              transfer t;
              expect_error<closed>(
                  p, "synchronous send", answered_within_ns,
                  [&] {
                    t = mine.start_synchronous_send(to, 0, std::span(bytes).first(p.below(100)));
                    (void)t.wait();
                  },
                  whose);
              if (t.valid()) {
                ADD_FAILURE() << "it can be waited for again";
              }
              expect_error<closed>(
                  p, "large synchronous send", answered_within_ns,
                  [&] {
                    t = mine.start_synchronous_send(to, 0, bytes);
                    const auto m = t.wait_for(nanoseconds(answered_within_ns));
                    EXPECT_FALSE(m.has_value()) << "nobody has received it";
                  },
                  whose);
              expect_used(t);
            }
          }
          // It is known here from now on.
          const std::uint64_t before = sent_by(p, n);
          expect_error<closed>(
              p, "known", 0, [&] { mine.send(to, 0, std::span(bytes).first(1)); }, whose);
          EXPECT_EQ(sent_by(p, n), before);
        }
      });
    }
    p.run();
  }
}

// ---- names, and objects that have them ----

struct counted {
  long value = 0;
  long add(long more) { return value += more; }
};

TEST(simulated_endings, of_named_objects_are_said_to_who_calls_them) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    constexpr node_id nodes = 4;
    program_job p(seed, {.nodes = nodes});
    p.cut_now_and_then(nodes);
    const auto home = static_cast<node_id>(p.below(nodes));
    unsigned have_found = 0, told = 0;
    bool have_ended = false;
    p.begin(home, [&] {
      {
        const named<counted> object("object");
        const named<counting_semaphore<>> units("units", 1);
        const named<barrier<>> phase("phase", nodes);
        const named_task task("task", static_cast<node_id>((home + 1) % nodes), [] {});
        const named<domain> members("members");
        publish("number", std::uint32_t{7});
        while (have_found != nodes) p.pause(program_job::ms);
        EXPECT_TRUE(withdraw("number"));
        EXPECT_FALSE(withdraw("number"));
      }
      have_ended = true;
    });
    for (node_id n = 0; n < nodes; ++n) {
      p.begin(n, [&] {
        // All of them work as long as they are there.
        const auto object = resource<counted>::await("object");
        EXPECT_GT(object.call<&counted::add>(1L), 0);
        semaphore_handle units = semaphore_handle::await("units");
        lock_handle lock = lock_handle::await("units");
        { const std::lock_guard held(lock); }
        barrier_handle phase = barrier_handle::await("phase");
        phase.arrive_and_wait();
        awaited_task task("task");
        task.join();
        endpoint mine;
        domain_handle members = domain_handle::await("members");
        members.join(mine.id());
        EXPECT_TRUE(members.leave(mine.id()));
        EXPECT_EQ(await_name<std::uint32_t>("number"), 7U);
        ++have_found;
        while (!have_ended) p.pause(program_job::ms);

        const auto there = [&](const resource_ended_error& e) { return e.node() == home; };
        const std::array<std::pair<const char*, std::function<void()>>, 9> uses{{
            {"object", [&] { (void)object.call<&counted::add>(1L); }},
            {"semaphore", [&] { units.acquire(); }},
            {"semaphore, tried", [&] { (void)units.try_acquire(); }},
            {"semaphore, released", [&] { units.release(); }},
            {"lock", [&] { lock.lock(); }},
            {"barrier", [&] { phase.arrive_and_wait(); }},
            {"task", [&] { task.join(); }},
            {"domain", [&] { (void)members.members(); }},
            {"domain, awaited", [&] { members.await_size(1); }},
        }};
        for (const auto& [what, use] : uses)
          expect_error<resource_ended_error>(p, what, answered_within_ns, use, there);
        for (const char* const name : {"object", "units", "phase", "task", "members"}) {
          expect_error<misuse_error>(p, name, answered_within_ns,
                                     [name] { (void)resource<counted>::find(name); });
        }
        EXPECT_FALSE(find_name<std::uint32_t>("number").has_value());
        ++told;
      });
    }
    p.run();
    EXPECT_EQ(told, nodes);
  }
}

// ---- nodes ----

std::uint32_t square(std::uint32_t x) { return x * x; }

// What its threads can do with a node, each of which needs an answer from there.
class uses_of_a_node {
 public:
  explicit uses_of_a_node(node_id which, endpoint_id port, resource<counted> object)
      : which_(which), port_(port), object_(object) {}

  void expect_all_to_fail(const program_job& p, std::int64_t within_ns, node_id expected) const {
    const auto it = [expected](const node_lost_error& e) { return e.node() == expected; };
    using lost = node_lost_error;
    expect_error<lost>(
        p, "call", within_ns, [&] { (void)call<square>(on_node{which_}, 3U); }, it);
    expect_error<lost>(
        p, "thread", within_ns, [&] { remote_thread(on_node{which_}, [] {}).join(); }, it);
    expect_error<lost>(
        p, "object", within_ns, [&] { (void)object_.call<&counted::add>(1L); }, it);
    expect_error<lost>(
        p, "task", within_ns, [&] { join_a_task_on(which_, [] {}); }, it);
    endpoint mine;
    std::array<std::byte, 8> room;
    expect_error<lost>(
        p, "receive", within_ns, [&] { (void)mine.receive(room, any_endpoint_on(which_)); }, it);
    expect_error<lost>(
        p, "receive from its port", within_ns, [&] { (void)mine.receive(room, port_); }, it);
    expect_error<lost>(
        p, "probe", within_ns, [&] { (void)mine.wait_probe(port_); }, it);
  }
  [[nodiscard]] endpoint_id port() const { return port_; }

 private:
  const node_id which_;
  const endpoint_id port_;
  const resource<counted> object_;
};

TEST(simulated_endings, of_nodes_that_have_left_are_said_to_who_needs_them) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    constexpr node_id founders = 3, capacity = 4;
    program_job p(seed, {.nodes = capacity, .founders = founders});
    const auto leaver = static_cast<node_id>(1 + p.below(founders - 1));
    bool has_left = false;
    std::array<unsigned, 2> ready{};  // of the others, and of its own
    std::optional<uses_of_a_node> uses;
    unsigned told = 0;
    p.begin(leaver, [&] {
      const endpoint port;
      const named<counted> object("object");
      publish("port", port.id());
      const auto found = resource<counted>::find("object");
      uses.emplace(leaver, port.id(), found);
      while (ready[0] != founders - 1) p.pause(program_job::ms);
      p.world.at(p.now_ns(), [&] { p.job->leave(leaver, [&] { has_left = true; }); });
    });
    for (node_id n = 0; n < founders; ++n) {
      if (n == leaver) continue;
      p.begin(n, [&] {
        const auto port = await_name<endpoint_id>("port");
        // It waits for one that never comes, while its node leaves.
        endpoint waits;
        std::array<std::byte, 8> room;
        transfer receives = waits.start_receive(room, port);
        EXPECT_EQ(call<square>(on_node{leaver}, 3U), 9U);
        ++ready[0];
        expect_error<node_lost_error>(
            p, "receive", INT64_MAX, [&] { (void)receives.wait(); },
            [&](const node_lost_error& e) { return e.node() == leaver; });
        while (!has_left) p.pause(program_job::ms);
        uses->expect_all_to_fail(p, answered_within_ns, leaver);
        endpoint mine;
        const std::array<std::byte, 8> bytes{};
        expect_error<endpoint_closed_error>(
            p, "send", answered_within_ns, [&] { mine.send(port, 0, bytes); },
            [&](const endpoint_closed_error& e) { return e.which() == port; });
        EXPECT_FALSE(find_name<endpoint_id>("port").has_value()) << "names go with their node";
        ++told;
      });
    }
    p.run();
    EXPECT_EQ(told, founders - 1U);
  }
}

// From the first use after its loss is known on; and those in progress when that happens.
TEST(simulated_endings, of_nodes_that_are_lost_are_said_to_who_needs_them) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    constexpr node_id nodes = 4;
    const sim::job_model model{
        .nodes = nodes, .lost_after_ns = 30 * program_job::ms, .breaks_off = true};
    for (const bool by_cut : {false, true}) {
      program_job p(seed, model, program_job::disorderly);
      const auto victim = static_cast<node_id>(p.below(nodes));
      std::optional<uses_of_a_node> uses;
      unsigned ready = 0, told = 0;
      bool may_end = false;
      p.begin(victim, [&] {
        const endpoint port;
        const named<counted> object("object");
        uses.emplace(victim, port.id(), resource<counted>::find("object"));
        while (!may_end) this_thread::sleep_for(nanoseconds(program_job::ms));
      });
      for (node_id n = 0; n < nodes; ++n) {
        if (n == victim) continue;
        p.begin(n, [&] {
          while (!uses) p.pause(100'000);
          EXPECT_EQ(call<square>(on_node{victim}, 3U), 9U);
          if (++ready == nodes - 1) {
            p.world.at(p.now_ns(), [&] {
              if (!by_cut) return p.job->node(victim).crash();
              for (node_id other = 0; other < nodes; ++other) p.world.cut(victim, other);
            });
          }
          while (ready != nodes - 1) p.pause(10'000);
          uses->expect_all_to_fail(p, 2 * model.lost_after_ns, victim);
          endpoint mine;
          const std::array<std::byte, 8> bytes{};
          expect_error<node_lost_error>(p, "send", 0, [&] { mine.send(uses->port(), 0, bytes); });
          expect_error<node_lost_error>(p, "name", 2 * model.lost_after_ns,
                                        [&] { (void)await_name<std::uint32_t>("never"); });
          expect_error<node_lost_error>(p, "publish", 2 * model.lost_after_ns, [&] {
            for (int i = 0;; ++i) publish("many " + std::to_string(i), i);
          });
          if (++told == nodes - 1) may_end = true;
        });
      }
      p.run();
      EXPECT_EQ(told, nodes - 1U);
      p.world.run([] { return false; }, p.now_ns() + 10 * program_job::ms);
    }
  }
}

}  // namespace
}  // namespace strata::test
