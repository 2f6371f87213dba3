// SPDX-License-Identifier: Apache-2.0
#include "sched/injected.hpp"

#include <gtest/gtest.h>

#include <array>

namespace strata::detail {
namespace {

const char* no_name() { return "nothing"; }
const int somewhere = 0;
// Only whether there is one counts here.
const auto* const travels = reinterpret_cast<const wire_type*>(&somewhere);
constexpr task_type ready_type{nullptr, nullptr, nullptr, &no_name};
const task_type token_type{nullptr, nullptr, nullptr, &no_name, travels};

class injected : public testing::Test {
 protected:
  injected_work w_;
  std::array<task, 3> ready_{{{&ready_type}, {&ready_type}, {&ready_type}}};
  std::array<task, 3> tokens_{{{&token_type}, {&token_type}, {&token_type}}};
};

TEST_F(injected, comes_out_in_its_order_and_what_is_ready_first) {
  for (std::size_t i = 0; i < 3; ++i) {
    w_.push(&tokens_[i]);
    w_.push(&ready_[i]);
    EXPECT_EQ(w_.size(), 2 * i + 2);
  }
  for (task& t : ready_) EXPECT_EQ(w_.take(), &t);
  EXPECT_FALSE(w_.has_ready());
  for (task& t : tokens_) EXPECT_EQ(w_.take(), &t);
  EXPECT_FALSE(w_.has_any());
  EXPECT_EQ(w_.take(), nullptr);
}

TEST_F(injected, a_token_is_not_taken_for_ready) {
  w_.push(&tokens_[0]);
  EXPECT_TRUE(w_.has_any());
  EXPECT_FALSE(w_.has_ready());
  EXPECT_EQ(w_.take_ready(), nullptr);
  EXPECT_EQ(w_.take(), &tokens_[0]);
}

TEST_F(injected, is_closed_only_while_nothing_is_in_and_open_again_afterwards) {
  for (auto* const kind : {&ready_, &tokens_}) {
    w_.push(kind->data());
    EXPECT_FALSE(injected_work::closure(w_));
    EXPECT_EQ(w_.take(), kind->data());
    EXPECT_TRUE(injected_work::closure(w_));
  }
  // Neither way stayed closed.
  w_.push(&tokens_[0]);
  w_.push(&ready_[0]);
  EXPECT_EQ(w_.size(), 2u);
  EXPECT_EQ(w_.take(), &ready_[0]);
  EXPECT_EQ(w_.take(), &tokens_[0]);
}

}  // namespace
}  // namespace strata::detail
