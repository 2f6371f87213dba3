// SPDX-License-Identifier: Apache-2.0
#include "sched/computation_failure.hpp"

#include <gtest/gtest.h>

#include <exception>
#include <stdexcept>
#include <string>

#include "sched/frame_depot.hpp"
#include "strata/detail/worker.hpp"

namespace strata::detail {
namespace {

std::exception_ptr failure_of(const char* what) {
  return std::make_exception_ptr(std::runtime_error(what));
}

class heard_failure final : public failure_listener {
 public:
  void computation_failed(worker&, const std::exception_ptr& error) noexcept override {
    try {
      std::rethrow_exception(error);
    } catch (const std::exception& e) {
      text = e.what();
    }
  }
  [[nodiscard]] std::string describe() const override { return "a test"; }
  std::string text;
};

// As on a node other than 0, where no run() ends a failure.
class settled_failure : public testing::Test {
 protected:
  void fail(const char* what) {
    failed_.begin(failure_of(what), true, [](const std::exception_ptr&) {});
  }
  frame_depot depot_;
  worker here_{depot_};
  computation_failure failed_;
};

TEST_F(settled_failure, is_forgotten_when_the_last_has_been_told_or_listens_no_more) {
  heard_failure one, other;
  fail("the first");
  failed_.add(one);
  failed_.add(other);
  failed_.settle(true);
  failed_.remove(one);
  EXPECT_TRUE(failed_.is_awaited());
  failed_.tell(here_);
  EXPECT_EQ(other.text, "the first");
  EXPECT_FALSE(failed_.is_there);
}

TEST_F(settled_failure, whose_word_comes_twice_does_not_take_the_next_one_along) {
  heard_failure one, other;
  fail("the first");
  failed_.settle(true);
  failed_.add(one);
  failed_.settle(true);
  fail("the second");
  failed_.remove(one);
  EXPECT_TRUE(failed_.is_there);
  failed_.add(other);
  failed_.settle(true);
  failed_.tell(here_);
  EXPECT_EQ(other.text, "the second");
}

TEST_F(settled_failure, that_has_yet_to_be_told_gives_way_to_the_next_one) {
  heard_failure one;
  fail("the first");
  failed_.add(one);
  failed_.settle(true);
  fail("the second");
  EXPECT_FALSE(failed_.is_awaited());
  failed_.settle(true);
  failed_.tell(here_);
  EXPECT_EQ(one.text, "the second");
  EXPECT_FALSE(failed_.is_there);
}

}  // namespace
}  // namespace strata::detail
