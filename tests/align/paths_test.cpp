// SPDX-License-Identifier: Apache-2.0
// Tracebacks and hits: right scores, right places, the same in every style.
#include <gtest/gtest.h>

#include <strata/runtime.hpp>

#include "apps/align/comparison.hpp"
#include "apps/align/small_path.hpp"
#include "apps/align/traceback.hpp"
#include "tests/align/reference.hpp"

namespace align_test {
namespace {

using namespace align;

std::string cigar(const path& p) {
  std::string out;
  for (const path_run& run : p.runs())
    out += std::to_string(run.length) + static_cast<char>(run.kind);
  return out;
}

// Whether the score is known or hardly, which is to say within a band or without one.
void expect_optimal_path(const sequence& a, const sequence& b, const scoring& s) {
  const driver d;
  const std::int64_t score = reference(a, b, s, false).score;
  const auto m = static_cast<std::int64_t>(a.size()), n = static_cast<std::int64_t>(b.size());
  const path p = global_path({a.codes}, {b.codes}, score, s, d);
  const path_summary sum = summarize(p, {a.codes}, {b.codes}, s);
  EXPECT_EQ(sum.query_letters, m);
  EXPECT_EQ(sum.ref_letters, n);
  EXPECT_EQ(sum.score, score);
  EXPECT_EQ(cigar(global_path({a.codes}, {b.codes}, -s.gap(m) - s.gap(n), s, d)), cigar(p));
}

TEST(path, runs_merge_and_summarize) {
  path p;
  p.add(step::pair, 2);
  p.add(step::pair, 0);
  p.add(step::query_only, 1);
  path q;
  q.add(step::query_only, 2);
  q.add(step::pair, 1);
  p.append(q);
  EXPECT_EQ(cigar(p), "2M3I1M");
  const sequence a = make_sequence("ACGGGT"), b = make_sequence("ATT");
  const path_summary s = summarize(p, {a.codes}, {b.codes}, {2, -1, 5, 1});
  EXPECT_EQ(s.matches, 2);
  EXPECT_EQ(s.mismatches, 1);
  EXPECT_EQ(s.gaps, 1);
  EXPECT_EQ(s.score, 2 * 2 - 1 - 7);
}

TEST(path, empty_sides_are_one_gap) {
  const sequence a = make_sequence("ACGT"), none;
  const driver d;
  EXPECT_EQ(cigar(global_path({a.codes}, {none.codes}, -8, {}, d)), "4I");
  EXPECT_EQ(cigar(global_path({none.codes}, {a.codes}, -8, {}, d)), "4D");
  EXPECT_EQ(cigar(global_path({none.codes}, {none.codes}, 0, {}, d)), "");
  comparison_options o;
  o.global = true;
  EXPECT_EQ(compare(a, none, o, d, false).score, -8);
  EXPECT_EQ(compare(none, none, o, d, false).score, 0);
  o.global = false;
  const comparison local = compare(a, none, o, d, false);
  EXPECT_EQ(local.score, 0);
  EXPECT_TRUE(local.hits.empty());
  EXPECT_TRUE(local.ok);
}

TEST(path, small_random_pairs) {
  std::mt19937 random(8);
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE(round);
    const sequence a = make_sequence(seeded_letters(random(), 1 + random() % 60));
    const sequence b = make_sequence(mutated(a.letters, random, 60));
    scoring s{1 + static_cast<int>(random() % 4), -static_cast<int>(random() % 4), 0,
              1 + static_cast<int>(random() % 3)};
    s.open = s.extend + static_cast<int>(random() % 8);
    expect_optimal_path(a, b, s);
  }
}

// Long enough for the divide and conquer, with gaps that cross its middle.
TEST(path, long_pairs_with_long_gaps) {
  std::mt19937 random(4);
  for (const scoring s : {scoring{1, -1, 2, 2}, scoring{2, -3, 5, 2}, scoring{3, -2, 40, 1},
                          scoring{1, -4, 300, 1}}) {
    for (int round = 0; round < 4; ++round) {
      SCOPED_TRACE(testing::Message() << "open " << s.open << " round " << round);
      std::string x = seeded_letters(random(), 2500), y = mutated(x, random, 5);
      // A deletion right at a middle row, of an odd length.
      if (round % 2) y.erase(y.size() / 2 - 300, 601);
      if (round == 2) x.erase(100, 900);
      const sequence a = make_sequence(x), b = make_sequence(y);
      expect_optimal_path(a, b, s);
    }
  }
}

TEST(begin, nearest_of_several) {
  // Both ACGT and ACGTTTTTACGT-like extensions score the same; the begin nearest to the end wins.
  const sequence a = make_sequence("ACGTACGT"), b = make_sequence("ACGTACGT");
  EXPECT_EQ(find_begin({a.codes}, {b.codes}, {7, 7}, 8, {}, {}), (cell{0, 0}));
  EXPECT_EQ(find_begin({a.codes}, {b.codes}, {3, 7}, 4, {}, {}), (cell{0, 4}));
  EXPECT_EQ(find_begin({a.codes}, {b.codes}, {3, 7}, 5, {}, {}).row, -1);
}

// The definition, the slow way: best alignment, take its columns away, again.
void expect_hits(const sequence& a, const sequence& b, const scoring& s,
                 const std::vector<finding>& hits, std::size_t most, std::int32_t least) {
  std::vector<std::pair<std::int64_t, std::int64_t>> free{{0, static_cast<std::int64_t>(b.size())}};
  for (std::size_t k = 0; k < most; ++k) {
    expected best;
    for (const auto& [from, to] : free) {
      if (from == to) continue;
      const expected e = reference(a, b, s, true, from, to);
      const bool first =
          e.score == best.score && std::pair(e.end_i, e.end_j) < std::pair(best.end_i, best.end_j);
      if (e.score > best.score || (e.score > 0 && first)) best = e;
    }
    if (best.score < least) {
      EXPECT_EQ(hits.size(), k);
      return;
    }
    ASSERT_GT(hits.size(), k);
    EXPECT_EQ(hits[k].score, best.score) << "hit " << k;
    EXPECT_EQ(hits[k].query_end, best.end_i) << "hit " << k;
    EXPECT_EQ(hits[k].ref_end, best.end_j) << "hit " << k;
    std::vector<std::pair<std::int64_t, std::int64_t>> rest;
    for (const auto& [from, to] : free) {
      rest.emplace_back(from, std::max(from, std::min(to, hits[k].ref_begin - 1)));
      rest.emplace_back(std::min(to, std::max(from, hits[k].ref_end)), to);
    }
    std::erase_if(rest, [](auto& r) { return r.first >= r.second; });
    free = rest;
  }
  EXPECT_EQ(hits.size(), most);
}

TEST(hits, equal_their_definition) {
  std::mt19937 random(12);
  for (int round = 0; round < 12; ++round) {
    SCOPED_TRACE(round);
    // A reference that holds several worn copies of parts of the query.
    const std::string q = seeded_letters(random(), 700);
    std::string r = seeded_letters(random(), 300);
    for (int copy = 0; copy < 4; ++copy) {
      const std::size_t from = random() % 400;
      r += mutated(q.substr(from, 100 + random() % 200), random, 3 + 5 * copy) +
           seeded_letters(random(), random() % 500);
    }
    const sequence a = make_sequence(q), b = make_sequence(r);
    comparison_options o;
    o.hits = 8;
    o.least_score = round % 2 ? 1 : 15;
    if (round % 3 == 0) o.score = {2, -3, 5, 2};
    driver d;
    d.kernels = find_kernels(round % 2 ? "baseline" : nullptr);
    const comparison c = compare(a, b, o, d, false);
    EXPECT_TRUE(c.ok);
    expect_hits(a, b, o.score, c.hits, o.hits, o.least_score);
  }
}

TEST(hits, a_large_hit_hides_nothing) {
  std::mt19937 random(5);
  const std::string q = seeded_letters(1, 3000);
  const std::string r = seeded_letters(2, 500) + q.substr(2000, 300) + mutated(q, random, 2) +
                        q.substr(100, 200) + seeded_letters(4, 700) + q.substr(1000, 60);
  const sequence a = make_sequence(q), b = make_sequence(r);
  comparison_options o;
  o.hits = 6;
  const comparison c = compare(a, b, o, {}, false);
  EXPECT_TRUE(c.ok);
  expect_hits(a, b, o.score, c.hits, o.hits, o.least_score);
}

TEST(hits, both_strands_share_the_reference) {
  const std::string q = seeded_letters(11, 400);
  const sequence a = make_sequence(q);
  const std::string back = reverse_complement(a).letters;
  const sequence b = make_sequence(seeded_letters(5, 200) + back.substr(50, 250) +
                                   seeded_letters(6, 100) + q.substr(0, 150));
  comparison_options o;
  o.which = strands::both;
  o.hits = 2;
  const comparison c = compare(a, b, o, {}, false);
  EXPECT_TRUE(c.ok);
  ASSERT_EQ(c.hits.size(), 2u);
  EXPECT_TRUE(c.hits[0].reverse_strand);
  EXPECT_GE(c.hits[0].score, 250);
  // Letters 101..350 of the query, read backwards.
  EXPECT_LE(std::abs(c.hits[0].query_begin - 350), 5);
  EXPECT_LE(std::abs(c.hits[0].query_end - 101), 5);
  EXPECT_FALSE(c.hits[1].reverse_strand);
}

TEST(styles, agree_in_everything) {
  std::mt19937 random(2);
  const std::string q = seeded_letters(31, 5000);
  const sequence a = make_sequence(q),
                 b = make_sequence(seeded_letters(32, 9000) + mutated(q, random, 8) +
                                   seeded_letters(33, 9000));
  comparison_options o;
  o.which = strands::both;
  const comparison serial = compare(a, b, o, {}, false);
  EXPECT_TRUE(serial.ok);
  for (const unsigned workers : {1u, 2u, 4u, 8u}) {
    strata::options settings;
    settings.workers = workers;
    strata::runtime runtime(settings);
    for (const auto how : {apps::style::fork_join, apps::style::fibers}) {
      SCOPED_TRACE(testing::Message() << apps::name_of(how) << " " << workers);
      driver d;
      d.how = how;
      d.workers = workers;
      const comparison c = runtime.run([&] { return compare(a, b, o, d, false); });
      EXPECT_TRUE(c.ok);
      EXPECT_EQ(c.score, serial.score);
      EXPECT_EQ(c.end_i, serial.end_i);
      EXPECT_EQ(c.end_j, serial.end_j);
      EXPECT_EQ(c.cells_with_maximum, serial.cells_with_maximum);
      ASSERT_EQ(c.hits.size(), serial.hits.size());
      for (std::size_t k = 0; k < c.hits.size(); ++k) {
        EXPECT_EQ(c.hits[k].score, serial.hits[k].score);
        EXPECT_EQ(c.hits[k].ref_begin, serial.hits[k].ref_begin);
        EXPECT_EQ(c.hits[k].ref_end, serial.hits[k].ref_end);
        EXPECT_EQ(cigar(c.hits[k].steps), cigar(serial.hits[k].steps));
      }
    }
  }
}

}  // namespace
}  // namespace align_test
