// SPDX-License-Identifier: Apache-2.0
// Fork-join branches and tokens whose arguments and results are objects, between simulated nodes
// over a network that misbehaves: each is made once, with what it was given, on whichever node; and
// ends by a deadline if a node is lost meanwhile.
#include <algorithm>
#include <array>
#include <cereal/types/map.hpp>
#include <cereal/types/string.hpp>
#include <cereal/types/vector.hpp>
#include <chrono>
#include <map>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "counted_object.hpp"
#include "expected_error.hpp"
#include "messages/messenger.hpp"
#include "program_job.hpp"
#include "strata/call.hpp"
#include "strata/fiber.hpp"
#include "strata/fiber_sync.hpp"
#include "strata/serialize.hpp"

namespace strata::test {
namespace {

using net::node_id;
using std::chrono::nanoseconds;

constexpr unsigned leaves_max = 64;
std::array<unsigned, leaves_max> times_run;  // by leaf
unsigned run_elsewhere;                      // than on node 0

// Of the fixed seeds: in one of others the nodes may be cut off for so long that none is.
void expect_some_elsewhere() {
  if (seeds().size() > 1) {
    EXPECT_GT(run_elsewhere, 0U);
  }
}

void computes() { this_thread::sleep_for(nanoseconds(300'000)); }

// By leaf: its name, and something as long as what it was given.
using findings = std::map<std::uint32_t, std::vector<std::string>>;
findings found_at(std::uint32_t leaf, const std::string& text) {
  return {{leaf, {std::to_string(leaf), text + text}}};
}
// Of various lengths, around what travels with a call.
std::string text_of(std::uint32_t leaf) {
  constexpr std::array<std::size_t, 6> lengths{0, 10, 300, 8'180, 16'376, 50'000};
  return std::string(lengths[leaf % lengths.size()], static_cast<char>('a' + leaf % 26));
}

findings search(std::uint32_t first, std::uint32_t last, const std::string& text) {
  if (last - first == 1) {
    ++times_run.at(first);
    if (strata::node_id() != 0) ++run_elsewhere;
    computes();
    return found_at(first, text);
  }
  const std::uint32_t middle = first + (last - first) / 2;
  auto [left, right] = fork2join(
      [&] {
        computes();  // so that the other half can be taken
        return search(first, middle, text);
      },
      call<search>(middle, last, text_of(middle)));
  left.merge(right);
  return std::move(left);
}
// The text of a leaf is that of the branch that it begins.
findings expected(std::uint32_t first, std::uint32_t last, const std::string& text) {
  if (last - first == 1) return found_at(first, text);
  const std::uint32_t middle = first + (last - first) / 2;
  findings all = expected(first, middle, text);
  all.merge(expected(middle, last, text_of(middle)));
  return all;
}

// one_leaves: when it has nothing to do, which another node may not know yet that sends it some.
auto outcome_of_a_search(std::uint64_t seed, bool one_leaves = false) {
  constexpr node_id nodes = 3;
  times_run.fill(0);
  program_job p(seed, {.nodes = nodes,
                       .founders = one_leaves ? nodes : node_id{0},
                       .transfer_bytes_min = seed % 2 == 0 ? 50'000 : net::transfers::never});
  p.cut_now_and_then(nodes);
  if (one_leaves) {
    p.world.at(static_cast<std::int64_t>(p.below(10 * program_job::ms)), [&] {
      p.job->leave(
          2, [] {}, [] {});
    });
  }
  p.begin(0, [&] {
    computes();  // until the others look for work
    EXPECT_EQ(search(0, leaves_max, "all"), expected(0, leaves_max, "all"));
  });
  p.run();
  EXPECT_EQ(std::count(times_run.begin(), times_run.end(), 1U), leaves_max) << "each is made once";
  for (node_id n = 0; n < nodes; ++n)
    EXPECT_EQ(p.job->node(n).messenger.large_values->size(), 0U) << "of calls that have ended";
  return p.outcome();
}

TEST(simulated_object_forks, are_made_once_with_what_they_were_given) {
  run_elsewhere = 0;
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    (void)outcome_of_a_search(seed);
  }
  expect_some_elsewhere();
}

TEST(simulated_object_forks, are_made_once_while_a_node_leaves) {
  run_elsewhere = 0;
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    (void)outcome_of_a_search(seed, true);
  }
  expect_some_elsewhere();
}

TEST(simulated_object_forks, are_replayed_from_a_seed) {
  EXPECT_EQ(outcome_of_a_search(7), outcome_of_a_search(7));
}

// ---- at home ----

counted_object with_more(const counted_object& c) { return {c.text + "more"}; }

TEST(simulated_object_forks, are_not_made_into_bytes_at_home) {
  program_job p(1, {.nodes = 2});
  counted_object::written = counted_object::read = 0;
  bool left = false;
  const auto fork = [&](auto&& meanwhile) {
    const auto [a, b] = fork2join(meanwhile, call<with_more>(counted_object{"one"}));
    EXPECT_EQ(b.text, "onemore");
  };
  p.begin(0, [&] {
    computes();
    // Nobody can take it meanwhile.
    fork([] {});
    EXPECT_EQ(counted_object::written, 0U);
    fork([] { computes(); });
    left = counted_object::written != 0;
  });
  p.run();
  EXPECT_TRUE(left) << "the other node had nothing to do";
  EXPECT_EQ(counted_object::written, 2U);
  EXPECT_EQ(counted_object::read, 2U);
}

// ---- errors ----

enum class fault { none, written, read, no_memory };
struct faulty {
  fault when = fault::none;
  std::string text;
  template <class Archive>
  void save(Archive& a) const {
    if (when == fault::written) throw std::range_error("a text that nobody writes");
    a(when, text);
  }
  template <class Archive>
  void load(Archive& a) {
    a(when, text);
    if (when == fault::read) throw std::range_error("a text that nobody reads");
    if (when == fault::no_memory) throw std::bad_alloc();
  }
};
void takes_faulty(const faulty&) { ADD_FAILURE() << "it has begun"; }
faulty returns_faulty(fault when, const std::string& text) { return {when, text}; }
std::string throws_words(const std::string& words) { throw std::out_of_range(words); }

TEST(simulated_object_forks, throw_what_is_wrong_with_them) {
  program_job p(1, {.nodes = 2});
  p.begin(0, [&] {
    computes();
    const auto is = [](const char* type, const std::string& words) {
      return [type, words](const remote_error& e) {
        return e.node() == 1 && e.type_name() == type &&
               e.message().find(words) != std::string::npos;
      };
    };
    const auto by_another = [](auto c) {
      // Whoever looks for work has asked by then.
      computes();
      (void)fork2join(
          [] {
            computes();
            return 0;
          },
          c);
    };
    for (const std::size_t bytes : {std::size_t{9}, std::size_t{100'000}}) {
      const std::string text(bytes, 't');
      expect_error<std::range_error>(p, "not written", INT64_MAX, [&] {
        by_another(call<takes_faulty>(faulty{fault::written, text}));
      });
      expect_error<remote_error>(
          p, "not read", INT64_MAX,
          [&] {
            by_another(call<takes_faulty>(faulty{fault::read, text}));
          },
          is("strata::serialization_error", "nobody reads"));
      expect_error<remote_error>(
          p, "no memory", INT64_MAX,
          [&] {
            by_another(call<takes_faulty>(faulty{fault::no_memory, text}));
          },
          is("strata::serialization_error", "bad_alloc"));
      expect_error<remote_error>(
          p, "a result that is not written", INT64_MAX,
          [&] { by_another(call<returns_faulty>(fault::written, text)); },
          is("std::range_error", "nobody writes"));
      expect_error<serialization_error>(p, "a result that is not read", INT64_MAX, [&] {
        by_another(call<returns_faulty>(fault::read, text));
      });
      expect_error<remote_error>(
          p, "the function", INT64_MAX, [&] { by_another(call<throws_words>(text)); },
          is("std::out_of_range", "t"));
    }
    // The left branch's error comes first, and what the other one returned is dropped.
    for (const std::size_t bytes : {std::size_t{9}, std::size_t{100'000}}) {
      expect_error<std::domain_error>(p, "the left one", INT64_MAX, [&] {
        computes();
        (void)fork2join(
            [] {
              computes();
              throw std::domain_error("left");
              return 0;
            },
            call<returns_faulty>(fault::none, std::string(bytes, 't')));
      });
    }
  });
  p.run();
  for (node_id n = 0; n < 2; ++n)
    EXPECT_EQ(p.job->node(n).messenger.large_values->size(), 0U) << "of calls that have ended";
}

// ---- losses ----

std::string longer_one(const std::string& text) {
  computes();
  return text + text;
}

TEST(simulated_object_forks, throw_when_a_node_is_lost) {
  unsigned made = 0, all_told = 0;
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    constexpr node_id nodes = 3;
    const sim::job_model model{
        .nodes = nodes, .lost_after_ns = 30 * program_job::ms, .breaks_off = true};
    program_job p(seed, model, program_job::disorderly);
    const std::int64_t ends_at =
        p.crash_one(nodes, 20 * program_job::ms).at_ns + 2 * model.lost_after_ns;
    unsigned ended = 0;
    // Two threads on one node: the others have nothing but what they take.
    for (const std::size_t bytes : {std::size_t{300}, std::size_t{90'000}}) {
      p.begin(1, [&, bytes] {
        const std::string text(bytes, 't');
        try {
          while (p.now_ns() < ends_at) {
            const auto [a, b] = fork2join(
                [] {
                  computes();
                  return 0;
                },
                call<longer_one>(text));
            EXPECT_EQ(b, text + text);
            ++made;
          }
        } catch (const node_lost_error&) {
          ++all_told;
        }
        EXPECT_LE(p.now_ns(), ends_at + program_job::ms);
        ++ended;
      });
    }
    p.run();
    EXPECT_EQ(ended, 2U);
    // What others still make for who was lost.
    p.world.run([] { return false; }, ends_at + 2 * model.lost_after_ns);
    for (node_id n = 0; n < nodes; ++n)
      EXPECT_EQ(p.job->node(n).messenger.large_values->size(), 0U) << "of calls that have ended";
  }
  EXPECT_GT(made, 0U);
  EXPECT_GT(all_told, 0U);
}

// ---- tokens ----

bool is_invoked(std::uint32_t leaf) { return leaf % 8 == 0; }

struct counts_letters : threaded {
  std::string text;
  std::map<char, int> so_far;
  std::uint32_t leaf;
  global_ptr<std::uint64_t> sum;
  slot_ptr done;
  void start() {
    ++times_run.at(leaf);
    if (strata::node_id() != 0 && !is_invoked(leaf)) ++run_elsewhere;
    std::uint64_t n = text.size();
    for (const auto& [letter, times] : so_far) n += static_cast<std::uint64_t>(times);
    put_sync(n, sum, done);
    terminate();
  }
};

auto outcome_of_many_tokens(std::uint64_t seed) {
  constexpr node_id nodes = 3;
  times_run.fill(0);
  // Long enough for others to take some.
  program_job p(seed, {.nodes = nodes, .cost = [](const detail::task&) { return 20'000L; }});
  p.cut_now_and_then(nodes);
  p.begin(0, [&] {
    computes();
    std::array<std::uint64_t, leaves_max> sums{};
    completion done(leaves_max);
    for (std::uint32_t i = 0; i < leaves_max; ++i) {
      const std::map<char, int> seen{{'a', 1}, {'b', static_cast<int>(i)}};
      if (is_invoked(i)) {
        invoke<counts_letters>(static_cast<node_id_t>(i / 8 % nodes), text_of(i), seen, i,
                               to_global(&sums[i]), done.sptr());
      } else {
        token<counts_letters>(text_of(i), seen, i, to_global(&sums[i]), done.sptr());
      }
    }
    done.wait();
    for (std::uint32_t i = 0; i < leaves_max; ++i)
      EXPECT_EQ(sums[i], text_of(i).size() + 1 + i) << i;
  });
  p.run();
  EXPECT_EQ(std::count(times_run.begin(), times_run.end(), 1U), leaves_max) << "each runs once";
  for (node_id n = 0; n < nodes; ++n)
    EXPECT_EQ(p.job->node(n).messenger.large_values->size(), 0U) << "of tokens that have run";
  return p.outcome();
}

TEST(simulated_object_tokens, run_once_with_what_they_were_given) {
  run_elsewhere = 0;
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    (void)outcome_of_many_tokens(seed);
  }
  expect_some_elsewhere();
}

TEST(simulated_object_tokens, are_replayed_from_a_seed) {
  EXPECT_EQ(outcome_of_many_tokens(7), outcome_of_many_tokens(7));
}

struct takes_a_faulty : threaded {
  faulty argument;
  void start() {
    EXPECT_EQ(strata::node_id(), 0U) << "it has begun elsewhere";
    terminate();
  }
};

// Nobody waits for a token, so the computation fails.
TEST(simulated_object_tokens, fail_when_they_cannot_be_made_into_bytes) {
  for (const std::size_t bytes : {std::size_t{9}, std::size_t{100'000}}) {
    sim::world world({}, 1);
    sim::job job(world, {.nodes = 2, .cost = two_microseconds});
    job.node(0).as_worker([&] {
      const faulty argument{fault::written, std::string(bytes, 't')};
      EXPECT_THROW(invoke<takes_a_faulty>(1, argument), std::range_error);
      // Until the other one has asked for some.
      for (int i = 0; i < 200; ++i) token<takes_a_faulty>(argument);
    });
    (void)world.run([&] { return job.failure() != nullptr; }, 1'000'000'000);
    ASSERT_NE(job.failure(), nullptr);
    EXPECT_THROW(std::rethrow_exception(job.failure()), std::range_error);
  }
}

}  // namespace
}  // namespace strata::test
