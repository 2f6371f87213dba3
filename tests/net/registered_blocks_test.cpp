// SPDX-License-Identifier: Apache-2.0
// Which registered block a span is in, and when a block's handle is given up.
#include "net/ucx/registered_blocks.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/prng.hpp"

namespace strata::net::ucx {
namespace {

class registered : public testing::Test {
 protected:
  std::shared_ptr<registered_block> add(std::size_t begin, std::size_t end) {
    const auto b =
        std::make_shared<registered_block>(std::span(memory_).subspan(begin, end - begin));
    // What it points to is nobody's business but UCX's.
    b->handle = reinterpret_cast<ucp_mem_h>(&handles_[made_++]);
    all_.add(b);
    return b;
  }
  std::shared_ptr<registered_block> use(std::size_t begin, std::size_t end) {
    return all_.use(std::span(memory_).subspan(begin, end - begin));
  }
  using handles = std::vector<ucp_mem_h>;
  handles given_up() {
    handles all;
    all_.for_each_idle([&](ucp_mem_h h) { all.push_back(h); });
    return all;
  }

  std::array<std::byte, 256> memory_{};
  std::array<char, 4096> handles_{};
  std::size_t made_ = 0;
  registered_blocks all_;
};

TEST_F(registered, are_found_by_any_part_of_them_and_by_nothing_else) {
  const auto low = add(10, 20), high = add(20, 40);
  EXPECT_EQ(use(10, 20), low);
  EXPECT_EQ(use(10, 11), low);
  EXPECT_EQ(use(19, 20), low);
  EXPECT_EQ(use(20, 40), high);
  EXPECT_EQ(use(39, 40), high);
  EXPECT_EQ(use(9, 11), nullptr);
  EXPECT_EQ(use(0, 10), nullptr);
  EXPECT_EQ(use(39, 41), nullptr);
  EXPECT_EQ(use(40, 50), nullptr);
  EXPECT_EQ(use(15, 25), nullptr) << "two that touch are not one";
  EXPECT_EQ(low->uses, 3U);
  EXPECT_EQ(high->uses, 2U);
}

TEST_F(registered, keep_their_handle_until_nobody_uses_it) {
  const auto b = add(0, 100);
  const auto first = use(0, 10), second = use(50, 100);
  all_.end(b);
  EXPECT_EQ(use(0, 10), nullptr);
  all_.let_go(first);
  EXPECT_TRUE(given_up().empty());
  all_.let_go(second);
  EXPECT_EQ(given_up(), handles{b->handle});
  EXPECT_TRUE(given_up().empty()) << "once";
}

TEST_F(registered, give_it_up_at_once_where_nobody_does) {
  const auto b = add(0, 100);
  all_.let_go(use(0, 10));
  all_.let_go(nullptr);
  EXPECT_TRUE(given_up().empty());
  all_.end(b);
  EXPECT_EQ(given_up(), handles{b->handle});
}

TEST_F(registered, that_have_got_no_handle_have_none_to_give_up) {
  const auto b = std::make_shared<registered_block>(std::span(memory_));
  all_.end(b);
  EXPECT_TRUE(given_up().empty());
}

TEST_F(registered, end_all_together) {
  const auto a = add(0, 10), b = add(5, 20), c = add(0, 200);
  const auto used = use(100, 101);
  EXPECT_EQ(used, c);
  all_.end_all();
  EXPECT_EQ(use(0, 1), nullptr);
  EXPECT_EQ(given_up().size(), 2U);
  all_.let_go(used);
  EXPECT_EQ(given_up(), handles{c->handle});
}

// Against a look at each of them.
TEST_F(registered, are_found_however_they_overlap) {
  prng random(1);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random.next() % n); };
  const auto some = [&] {
    const std::size_t begin = below(memory_.size());
    return std::pair(begin, begin + 1 + below(memory_.size() - begin));
  };
  std::vector<std::shared_ptr<registered_block>> there;
  std::size_t found = 0, missed = 0;
  for (int i = 0; i < 2000; ++i) {
    if (there.size() < 2 + below(12)) {
      const auto [begin, end] = some();
      there.push_back(add(begin, end));
    } else {
      const auto one = there.begin() + static_cast<std::ptrdiff_t>(below(there.size()));
      all_.end(*one);
      there.erase(one);
    }
    const auto [begin, end] = some();
    const std::byte* const from = memory_.data() + begin;
    const std::byte* const to = memory_.data() + end;
    const auto holds = [&](const registered_block& b) {
      return b.bytes.data() <= from && b.bytes.data() + b.bytes.size() >= to;
    };
    const bool is_there =
        std::any_of(there.begin(), there.end(), [&](const auto& b) { return holds(*b); });
    const auto b = use(begin, end);
    ASSERT_EQ(b != nullptr, is_there) << begin << " to " << end;
    ASSERT_TRUE(b == nullptr || holds(*b));
    (is_there ? found : missed) += 1;
    all_.let_go(b);
  }
  EXPECT_GT(found, 100U);
  EXPECT_GT(missed, 100U);
}

}  // namespace
}  // namespace strata::net::ucx
