// SPDX-License-Identifier: Apache-2.0
// Every kernel that this processor runs, in every width, against plain dynamic programming.
#include <gtest/gtest.h>

#include <map>
#include <utility>

#include "apps/align/driver.hpp"
#include "tests/align/reference.hpp"
#include "tests/common/sampled.hpp"

namespace align_test {
namespace {

using namespace align;

class kernels : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    set_ = find_kernels(GetParam());
    if (!set_) GTEST_SKIP() << "this processor cannot run " << GetParam();
  }

  void expect_equal(const sequence& a, const sequence& b, sweep_options o) const {
    o.kernels = set_;
    o.keep_last_row = !o.local;
    sweep s({a.codes}, {b.codes}, o);
    run_serial(s, nullptr);
    const expected e = reference(a, b, o.score, o.local);
    if (!o.local) {
      EXPECT_EQ(s.last_row().back(), e.score);
      return;
    }
    if (e.score == 0) {
      EXPECT_EQ(s.best().count(), 0);
      return;
    }
    EXPECT_EQ(s.best().score(), e.score);
    EXPECT_EQ(s.best().count(), e.count);
    EXPECT_EQ(s.best().first(), (cell{e.end_i - 1, e.end_j - 1}));
  }

  const kernel_set* set_ = nullptr;
};

TEST_P(kernels, random_pairs_and_parameters) {
  std::mt19937 random(20261120);
  for (int round = 0; round < strata::test::sampled(150, 50); ++round) {
    const sequence a =
        make_sequence(seeded_letters(random(), 1 + random() % (round % 3 ? 300 : 1200)));
    const std::string base = round % 2 ? a.letters : seeded_letters(random(), 1 + random() % 1500);
    const sequence b = make_sequence(mutated(base, random, static_cast<int>(random() % 40)));
    sweep_options o;
    o.score.match = 1 + static_cast<int>(random() % 5);
    o.score.mismatch = -static_cast<int>(random() % 6);
    o.score.extend = 1 + static_cast<int>(random() % 4);
    o.score.open = o.score.extend + (round % 4 < 2 ? 0 : static_cast<int>(random() % 6));
    if (round % 7 == 0) o.score.match *= 30;
    if (round % 11 == 0)
      o.score.match = 300 + static_cast<int>(random() % 1000), o.score.open *= 400,
      o.score.extend *= 400;
    o.height_index = static_cast<int>(random() % 5) - 1;
    o.block_steps = round % 2 ? 64 : 1024;
    o.narrowest = static_cast<lane_width>(random() % 3);
    SCOPED_TRACE(testing::Message() << "round " << round);
    for (const bool local : {true, false}) {
      o.local = local;
      expect_equal(a, b, o);
    }
  }
}

// Around every size at which a strip, a lane or a block begins.
TEST_P(kernels, sizes_at_the_edges_of_tiles) {
  const std::size_t lanes = static_cast<std::size_t>(set_->lanes);
  for (const std::size_t m : {std::size_t{1}, std::size_t{2}, lanes - 1, lanes, lanes + 1,
                              2 * lanes, 8 * lanes - 1, 8 * lanes, 8 * lanes + 1}) {
    for (const std::size_t n : {std::size_t{1}, std::size_t{2}, std::size_t{63}, std::size_t{64},
                                std::size_t{65}, 2 * lanes - 2, 2 * lanes}) {
      SCOPED_TRACE(testing::Message() << m << " x " << n);
      const sequence a = make_sequence(seeded_letters(m, m)),
                     b = make_sequence(seeded_letters(n + 77, n));
      for (const bool local : {true, false}) {
        for (const int open : {2, 5}) {
          sweep_options o;
          o.local = local;
          o.score.open = open;
          o.block_steps = 64;
          expect_equal(a, b, o);
        }
      }
    }
  }
}

// One letter only: the score grows along the whole diagonal, through every width, and ties fill
// rows and columns.
TEST_P(kernels, repeats) {
  for (const int match : {1, 50, 200}) {
    for (const auto& [m, n] : {std::pair{700, 700}, std::pair{40, 900}, std::pair{900, 40}}) {
      SCOPED_TRACE(testing::Message() << m << " x " << n << " match " << match);
      sweep_options o;
      o.score.match = match;
      o.block_steps = 128;
      expect_equal(make_sequence(std::string(static_cast<std::size_t>(m), 'A')),
                   make_sequence(std::string(static_cast<std::size_t>(n), 'A')), o);
    }
  }
}

// Scores beyond 16 bits, with 16-bit lanes carrying differences from a base.
TEST_P(kernels, scores_beyond_65535) {
  std::mt19937 random(3);
  const sequence a = make_sequence(seeded_letters(9, 2500)),
                 b = make_sequence(mutated(a.letters, random, 4));
  sweep_options o;
  o.score = {60, -50, 90, 40};
  o.block_steps = 256;
  o.kernels = set_;
  sweep s({a.codes}, {b.codes}, o);
  run_serial(s, nullptr);
  EXPECT_GT(s.best().score(), 65535);
  EXPECT_GT(s.work().by_width[static_cast<int>(lane_width::bits16)].load(), 0);
  expect_equal(a, b, o);
  o.local = false;
  expect_equal(a, b, o);
  o.score = {max_parameter, -max_parameter, max_parameter, max_parameter};
  for (const bool local : {true, false}) {
    o.local = local;
    expect_equal(a, b, o);
  }
}

// Within a band: fewer tiles, the same score, and nowhere a score that is too high.
TEST_P(kernels, bands) {
  std::mt19937 random(20261122);
  for (int round = 0; round < strata::test::sampled(40, 15); ++round) {
    SCOPED_TRACE(testing::Message() << "round " << round);
    const std::size_t length = 1 + random() % (round % 4 ? 3000 : 300);
    const sequence a = make_sequence(seeded_letters(random(), length));
    const sequence b = make_sequence(mutated(a.letters, random, static_cast<int>(random() % 8)));
    sweep_options o;
    o.local = false;
    o.score.match = 1 + static_cast<int>(random() % 4);
    o.score.mismatch = -static_cast<int>(random() % 5);
    o.score.extend = 1 + static_cast<int>(random() % 3);
    o.score.open = o.score.extend + (round % 3 ? 0 : static_cast<int>(random() % 50));
    if (round % 9 == 0) o.score.open *= 150, o.score.extend *= 150;
    o.height_index = static_cast<int>(random() % 5) - 1;
    o.block_steps = round % 2 ? 64 : 0;
    o.keep_last_row = true;
    o.kernels = set_;
    sweep all({a.codes}, {b.codes}, o);
    run_serial(all, nullptr);
    const auto m = static_cast<std::ptrdiff_t>(a.size()), n = static_cast<std::ptrdiff_t>(b.size());
    const std::int32_t score = all.last_row().back();
    o.within = band_of_paths(m, n, score, o.score);
    sweep some({a.codes}, {b.codes}, o);
    run_serial(some, nullptr);
    EXPECT_EQ(some.last_row().back(), score);
    if (o.block_steps > 0) {
      EXPECT_LE(some.tiles(), all.tiles());
    }
    for (std::size_t j = 0; j < b.size(); ++j) {
      ASSERT_LE(some.last_row()[j], all.last_row()[j]) << j;
      ASSERT_LE(some.last_row_gap()[j], all.last_row_gap()[j]) << j;
    }
  }
}

TEST_P(kernels, a_narrow_band_leaves_most_tiles_out) {
  const sequence a = make_sequence(seeded_letters(5, 6000));
  sweep_options o;
  o.local = false;
  o.block_steps = 128;
  o.height_index = 0;
  o.keep_last_row = true;
  o.kernels = set_;
  o.within = band_of_paths(6000, 6000, 6000, o.score);
  EXPECT_EQ(o.within.lowest, 0);
  EXPECT_EQ(o.within.highest, 0);
  sweep s({a.codes}, {a.codes}, o);
  run_serial(s, nullptr);
  EXPECT_EQ(s.last_row().back(), 6000);
  EXPECT_LE(s.tiles(), 6 * s.strips());
}

// What comes in from the left is never made less of, whichever lane it comes to: one alignment that
// continues what enters at a row.
TEST_P(kernels, left_borders_are_upper_bounds) {
  std::mt19937 random(5);
  const sequence a = make_sequence(seeded_letters(12, 512));
  constexpr std::ptrdiff_t length = 180;
  for (const scoring s : {scoring{1, -1, 2, 2}, scoring{2, -3, 5, 2}}) {
    for (const std::int32_t border : {100, 300}) {
      for (std::ptrdiff_t row = 0; row + length + 1 < 512; row += 7) {
        const auto from = static_cast<std::size_t>(row + 1);
        const sequence b =
            make_sequence(a.letters.substr(from, length) + seeded_letters(random(), 220));
        sweep_options o;
        o.score = s;
        o.kernels = set_;
        o.height_index = 1;
        o.block_steps = 4096;
        o.left_borders.assign(512, border);
        sweep w({a.codes}, {b.codes}, o);
        run_serial(w, nullptr);
        const sweep::tile_number end = w.tile_of({row + length, length - 1});
        ASSERT_GE(w.tile_maximum(end.strip, end.block), border + length * s.match)
            << "row " << row << " border " << border;
      }
    }
  }
}

// The best cell of one tile, also where alignments of other tiles fade into its padding.
TEST_P(kernels, best_cell_of_each_tile) {
  std::mt19937 random(2261);
  for (int round = 0; round < 6; ++round) {
    const sequence a = make_sequence(seeded_letters(random(), 40 + random() % 400));
    const sequence b = make_sequence(mutated(a.letters, random, 10).substr(0, 30 + random() % 300));
    sweep_options o;
    o.score = round % 2 ? scoring{5, -4, 10, 4} : scoring{1, -1, 2, 2};
    o.kernels = set_;
    o.height_index = static_cast<int>(random() % 3);
    o.block_steps = 64;
    sweep whole({a.codes}, {b.codes}, o);
    run_serial(whole, nullptr);
    std::map<std::pair<int, int>, std::pair<std::int32_t, cell>> best;
    std::vector<std::int32_t> h(b.size() + 1), f(b.size() + 1, -1000);
    for (std::size_t i = 0; i < a.size(); ++i) {
      std::int32_t diagonal = 0, e = -1000;
      for (std::size_t j = 0; j < b.size(); ++j) {
        e = std::max(e - o.score.extend, h[j] - o.score.open);
        f[j + 1] = std::max(f[j + 1] - o.score.extend, h[j + 1] - o.score.open);
        const bool same =
            same_letter(a, b, static_cast<std::int64_t>(i), static_cast<std::int64_t>(j));
        const std::int32_t score = std::max(
            {diagonal + (same ? o.score.match : o.score.mismatch), e, f[j + 1], std::int32_t{0}});
        diagonal = h[j + 1];
        h[j + 1] = score;
        const cell here{static_cast<std::ptrdiff_t>(i), static_cast<std::ptrdiff_t>(j)};
        const sweep::tile_number t = whole.tile_of(here);
        auto& known = best[{t.strip, t.block}];
        if (score > known.first) known = {score, here};
      }
    }
    for (const auto& [tile, wanted] : best) {
      o.only_strip = tile.first;
      o.only_block = tile.second;
      sweep one({a.codes}, {b.codes}, o);
      run_serial(one, nullptr);
      SCOPED_TRACE(testing::Message()
                   << "round " << round << " tile " << tile.first << ", " << tile.second);
      ASSERT_EQ(one.best().count() > 0 ? one.best().score() : 0, wanted.first);
      if (wanted.first > 0) {
        ASSERT_EQ(one.best().first(), wanted.second);
      }
    }
  }
}

// Unknown bases match nothing, each other neither.
TEST_P(kernels, ambiguous_letters_never_match) {
  sweep_options o;
  expect_equal(make_sequence("NNNNRYNN"), make_sequence("NNNNRYNN"), o);
  expect_equal(make_sequence("ACGNACG"), make_sequence("ACGNACG"), o);
}

INSTANTIATE_TEST_SUITE_P(sets, kernels, testing::Values("baseline", "avx2", "avx512"),
                         [](const auto& instance) { return std::string(instance.param); });

// A kernel loads them in every step, and vectors that cross cache lines take longer.
TEST(packed_query, letters_of_each_strip_begin_a_cache_line) {
  const sequence query = make_sequence(seeded_letters(1, 1500));
  const align::packed_query packed({query.codes}, 64, 2);
  ASSERT_EQ(packed.strips().size(), 6u);
  for (const auto& strip : packed.strips())
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(packed.letters(strip)) % 64, 0u);
}

TEST(kernel_choice, unknown_names_are_refused) {
  EXPECT_EQ(find_kernels("mmx"), nullptr);
  ASSERT_NE(find_kernels(), nullptr);
  EXPECT_EQ(find_kernels("baseline"), &baseline_kernels());
}

}  // namespace
}  // namespace align_test
