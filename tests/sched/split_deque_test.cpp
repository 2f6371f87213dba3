// SPDX-License-Identifier: Apache-2.0
// When an owner that has asked itself to look later does so. What thieves may do is in tests/model.
#include "strata/detail/split_deque.hpp"

#include <gtest/gtest.h>

#include <array>
#include <memory>

#include "strata/detail/task.hpp"

namespace strata::test {
namespace {

using detail::push_outcome;

// Sixteen tasks, half of which are shared, and an owner that looks again when there are `more`.
class owner_that_asks_later : public ::testing::Test {
 protected:
  static constexpr std::size_t at_first = 16;
  static constexpr std::size_t more = 8;
  using deque = detail::split_deque<int>;

  void SetUp() override {
    if (!detail::asymmetric_fences::available()) GTEST_SKIP() << "every push tends";
    items_->ask();
    for (std::size_t i = 0; i < at_first; ++i) {
      if (i + 1 == at_first) items_->ask();
      if (push()) (void)items_->tend();
    }
    items_->ask_later(more);
  }
  // Whether the owner has to look.
  bool push() { return items_->push(items_->next(), &numbers_[pushed_++]); }
  // Whether the owner looks at its next push.
  void pop(std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) EXPECT_NE(items_->pop(), nullptr);
  }

  std::unique_ptr<deque> items_ = std::make_unique<deque>();
  std::array<int, 256> numbers_{};
  std::size_t pushed_ = 0;
};

TEST_F(owner_that_asks_later, does_so_when_there_are_more) {
  for (std::size_t i = 0; i < more; ++i) EXPECT_FALSE(push()) << i;
  EXPECT_TRUE(push());
  EXPECT_EQ(items_->tend(), push_outcome::shared);
  EXPECT_FALSE(push()) << "it has looked";
}

// As a tree of forks is walked: what comes and goes meanwhile asks nobody.
TEST_F(owner_that_asks_later, does_so_when_it_has_taken_back_what_it_shared) {
  ASSERT_TRUE(items_->has_shared());
  while (!items_->asked() && items_->approximate_size() > 1) {
    pop(1);
    if (items_->asked()) break;
    for (std::size_t i = 0; i < more / 2; ++i) EXPECT_FALSE(push());
    pop(more / 2);
  }
  EXPECT_TRUE(items_->asked());
  EXPECT_GT(items_->approximate_size(), 2U) << "and not as late as at the last";
  EXPECT_TRUE(push());
}

TEST_F(owner_that_asks_later, does_so_when_nothing_is_left) {
  int* taken = nullptr;
  while (items_->has_shared() || items_->force())
    EXPECT_EQ(items_->steal(taken), detail::steal_outcome::taken);
  EXPECT_FALSE(items_->asked());
  EXPECT_FALSE(items_->try_pop(&numbers_[pushed_ - 1]));
  EXPECT_TRUE(items_->asked());
}

TEST_F(owner_that_asks_later, is_asked_by_others_all_the_same) {
  items_->ask();
  EXPECT_TRUE(push());
  EXPECT_EQ(items_->tend(), push_outcome::shared);
  EXPECT_FALSE(push());
  for (std::size_t i = 2; i < more; ++i) EXPECT_FALSE(push()) << i;
  EXPECT_TRUE(push()) << "what it asked itself stands";
}

TEST_F(owner_that_asks_later, does_not_forget_it_with_a_reminder) {
  items_->remind();
  EXPECT_TRUE(push());
  EXPECT_EQ(items_->tend(), push_outcome::reminded);
  items_->forget_reminder();
  for (std::size_t i = 1; i < more; ++i) EXPECT_FALSE(push()) << i;
  EXPECT_TRUE(push());
}

}  // namespace
}  // namespace strata::test
