// SPDX-License-Identifier: Apache-2.0
// What tokens of objects leave behind on the node where they were made, how many of them are made
// into bytes at a time, and on which stacks, between simulated nodes.
#include <array>
#include <cereal/types/string.hpp>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cluster/words/kinds.hpp"
#include "counted_object.hpp"
#include "messages/messenger.hpp"
#include "program_job.hpp"
#include "strata/fiber.hpp"
#include "strata/fiber_sync.hpp"
#include "strata/serialize.hpp"

namespace strata::test {
namespace {

using net::node_id;

// ---- a node leaves ----

constexpr unsigned texts_begun = 48;
unsigned texts_run;

struct adds_length : threaded {
  std::string text;
  global_ptr<std::uint64_t> length;
  slot_ptr done;
  void start() {
    ++texts_run;
    put_sync(std::uint64_t{text.size()}, length, done);
    terminate();
  }
};

std::int64_t slow_where_it_arrives(const detail::task& t) {
  const bool is_text = std::string_view(t.type->name()).find("adds_length") != std::string::npos;
  return is_text ? 5 * program_job::ms : 2'000;
}

// The node where they begin leaves as soon as they have. Others ask for their arguments after it
// has nothing else to do.
TEST(simulated_object_tokens, keep_their_node_until_their_arguments_have_been_fetched) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    constexpr node_id nodes = 3, leaver = 2;
    texts_run = 0;
    program_job p(seed, {.nodes = nodes,
                         .founders = nodes,
                         .cost = slow_where_it_arrives,
                         .answers_while_busy = true});
    p.cut_now_and_then(nodes);
    std::vector<global_ptr<std::uint64_t>> lengths;
    std::optional<slot_ptr> all_run;
    p.begin(0, [&] {
      std::array<std::uint64_t, texts_begun> here{};
      completion done(texts_begun);
      for (std::uint64_t& l : here) lengths.push_back(to_global(&l));
      all_run = done.sptr();
      done.wait();
      for (const std::uint64_t l : here) EXPECT_EQ(l, 50'000U);
    });
    p.begin(leaver, [&] {
      while (!all_run) p.pause(program_job::ms);
      const std::string text(50'000, 't');
      for (unsigned i = 0; i < texts_begun; ++i) {
        if (i % 8 == 0) {
          invoke<adds_length>(static_cast<node_id_t>(i / 8 % 2), text, lengths[i], *all_run);
        } else {
          token<adds_length>(text, lengths[i], *all_run);
        }
      }
      p.world.at(p.now_ns(), [&] { p.job->leave(leaver, [] {}); });
    });
    p.run([&] { return p.job->node(leaver).has_left(); });
    EXPECT_EQ(texts_run, texts_begun);
    for (node_id n = 0; n < nodes; ++n)
      EXPECT_EQ(p.job->node(n).messenger.large_values->size(), 0U) << "of tokens that have run";
  }
}

struct takes_text : threaded {
  std::string text;
  void start() { terminate(); }
};

TEST(simulated_object_tokens, leave_nothing_behind_that_cannot_arrive) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    program_job p(seed, {.nodes = 3, .founders = 3});
    const auto has_left = [&] { return p.job->node(0).members().of(2) == cluster::standing::left; };
    p.begin(0, [&] {
      const std::string text(50'000, 't');
      // Some of them wait until it has left, and are given up.
      for (int i = 0; i < 100 && !has_left(); ++i) {
        invoke<takes_text>(2, text);
        p.pause(program_job::ms);
      }
      while (!has_left()) p.pause(program_job::ms);
      // This one is not sent.
      EXPECT_THROW(invoke<takes_text>(2, text), node_lost_error);
    });
    p.world.at(static_cast<std::int64_t>(p.below(program_job::ms)),
               [&] { p.job->leave(2, [] {}); });
    EXPECT_TRUE(p.world.run([&] { return p.threads() == 0 && p.job->node(2).has_left(); },
                            p.now_ns() + 20'000 * program_job::ms));
    // Of one that was given up the program hears, as of one that is not sent.
    if (const std::exception_ptr failure = p.job->failure()) {
      EXPECT_THROW(std::rethrow_exception(failure), node_lost_error);
    }
    for (node_id n = 0; n < 3; ++n) EXPECT_EQ(p.job->node(n).messenger.large_values->size(), 0U);
  }
}

// ---- how many at a time ----

struct takes_counted : threaded {
  static inline unsigned begun = 0;
  counted_object argument;
  void start() {
    ++begun;
    terminate();
  }
};

// Whoever makes them handles no messages meanwhile.
TEST(simulated_object_tokens, are_made_into_bytes_no_more_than_one_answer_takes) {
  const auto written_by = [](std::size_t bytes,
                             const std::function<void(sim::simulated_node&)>& f) {
    sim::world world({}, 1);
    sim::job job(world, {.nodes = 2, .cost = two_microseconds});
    job.node(0).as_worker([&] {
      const counted_object argument{std::string(bytes, 't')};
      for (int i = 0; i < 100; ++i) token<takes_counted>(argument);
    });
    counted_object::written = takes_counted::begun = 0;
    f(job.node(0));
    const unsigned n = counted_object::written;
    EXPECT_TRUE(world.run([&] { return takes_counted::begun == 100; }, 1'000'000'000));
    (void)world.run([] { return false; }, 10'000'000);  // who has sent arguments hears of it
    return n;
  };
  const auto asked_for_32 = [](sim::simulated_node& n) {
    const std::array<std::uint32_t, 2> request{32, 0};
    n.handle(1, cluster::kind::steal, std::as_bytes(std::span(request)));
  };
  EXPECT_EQ(written_by(100, asked_for_32), 32U);
  EXPECT_EQ(written_by(10'000, asked_for_32), 4U);
  EXPECT_EQ(written_by(100'000, asked_for_32), 1U);
  const auto handed_over = [](sim::simulated_node& n) {
    n.as_worker([&] { n.protocols.balance.hand_over(); });
  };
  EXPECT_EQ(written_by(100, handed_over), 100U);
  EXPECT_EQ(written_by(10'000, handed_over), 4U);
  EXPECT_EQ(written_by(100'000, handed_over), 1U);
}

// ---- on small stacks ----

using many_numbers = std::array<double, 40'000>;
unsigned sums_elsewhere;
struct adds_numbers : threaded {
  many_numbers numbers;
  global_ptr<double> sum;
  slot_ptr done;
  void start() {
    if (strata::node_id() != 0) ++sums_elsewhere;
    put_sync(std::accumulate(numbers.begin(), numbers.end(), 0.0), sum, done);
    terminate();
  }
};

TEST(simulated_object_tokens, may_be_larger_than_the_stacks_of_tasks) {
  program_job p(1, {.nodes = 2, .cost = [](const detail::task&) { return 20'000L; }});
  sums_elsewhere = 0;
  p.begin(0, [] {
    constexpr unsigned all = 16;
    static_assert(sizeof(many_numbers) > std::size_t{256} << 10);
    const auto numbers = std::make_unique<many_numbers>();
    std::iota(numbers->begin(), numbers->end(), 1.0);
    std::array<double, all> sums{};
    completion done(all);
    invoke<adds_numbers>(1, *numbers, to_global(&sums[0]), done.sptr());
    for (unsigned i = 1; i < all; ++i)
      token<adds_numbers>(*numbers, to_global(&sums[i]), done.sptr());
    done.wait();
    for (const double s : sums) EXPECT_EQ(s, 40'000.0 * 40'001.0 / 2);
  });
  p.run();
  EXPECT_GT(sums_elsewhere, 1U);
}

}  // namespace
}  // namespace strata::test
