// SPDX-License-Identifier: Apache-2.0
#include "os/pages.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "strata/error.hpp"

namespace {

using strata::os::page_bytes;
using strata::os::page_range;

TEST(pages, rounds_up) {
  EXPECT_EQ(strata::os::round_up_to_pages(0), 0u);
  EXPECT_EQ(strata::os::round_up_to_pages(1), page_bytes());
  EXPECT_EQ(strata::os::round_up_to_pages(page_bytes()), page_bytes());
  EXPECT_EQ(page_range(1).size(), page_bytes());
}

TEST(pages, are_zeroed_and_writable) {
  const page_range range(4 * page_bytes());
  EXPECT_TRUE(std::all_of(range.data(), range.data() + range.size(),
                          [](std::byte b) { return b == std::byte{0}; }));
  std::fill_n(range.data(), range.size(), std::byte{1});
}

TEST(pages, a_large_range_costs_addresses_only) {
  const page_range range(std::size_t{64} << 30);
  range.data()[range.size() - 1] = std::byte{1};
}

TEST(pages, moves_and_is_empty_afterwards) {
  page_range first(page_bytes());
  std::byte* data = first.data();
  page_range second = std::move(first);
  EXPECT_EQ(second.data(), data);
  EXPECT_EQ(first.data(), nullptr);  // NOLINT: documented
  page_range third(2 * page_bytes());
  third = std::move(second);
  EXPECT_EQ(third.data(), data);
  EXPECT_EQ(third.size(), page_bytes());
}

TEST(pages, decommitted_memory_reads_as_zero) {
  page_range range(3 * page_bytes());
  std::fill_n(range.data(), range.size(), std::byte{1});
  range.decommit(page_bytes(), page_bytes());
  EXPECT_EQ(range.data()[page_bytes() - 1], std::byte{1});
  EXPECT_EQ(range.data()[page_bytes()], std::byte{0});
  EXPECT_EQ(range.data()[2 * page_bytes()], std::byte{1});
}

TEST(pages_death, touching_a_guard_kills) {
  page_range range(3 * page_bytes());
  range.guard(page_bytes(), page_bytes());
  range.data()[0] = std::byte{1};
  range.data()[2 * page_bytes()] = std::byte{1};
  EXPECT_DEATH(const_cast<volatile std::byte&>(range.data()[page_bytes()]) = std::byte{1}, "");
  range.decommit(0, range.size());
  EXPECT_DEATH(const_cast<volatile std::byte&>(range.data()[page_bytes()]) = std::byte{1}, "");
}

TEST(pages_death, a_guard_outside_or_unaligned_is_our_bug) {
  page_range range(page_bytes());
  EXPECT_DEATH(range.guard(page_bytes(), page_bytes()), "STRATA_CHECK");
  EXPECT_DEATH(range.guard(1, page_bytes()), "STRATA_CHECK");
  EXPECT_DEATH(range.decommit(0, 1), "STRATA_CHECK");
}

TEST(pages, exhausted_address_space_is_an_error_with_the_reason) {
  try {
    page_range(std::size_t{1} << 60);
    FAIL() << "2^60 bytes were reserved";
  } catch (const strata::error& problem) {
    EXPECT_STREQ(
        problem.what(),
        "cannot reserve 1152921504606846976 bytes of address space: Cannot allocate memory");
  }
}

}  // namespace
