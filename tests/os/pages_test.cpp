// SPDX-License-Identifier: Apache-2.0
#include "os/pages.hpp"

#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <utility>
#include <vector>

#include "../common/denied_calls.hpp"
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

TEST(pages, populated_ones_have_memory) {
  const page_range range(5 * page_bytes());
  // Whole pages only: the second and the third.
  if (!strata::os::populate(range.data() + 1, 3 * page_bytes()))
    GTEST_SKIP() << "this kernel does not give memory ahead";
  std::vector<unsigned char> there(5);
  ASSERT_TRUE(range.residency(0, range.size(), there.data()));
  EXPECT_EQ(there, (std::vector<unsigned char>{0, 1, 1, 0, 0}));
  EXPECT_TRUE(strata::os::populate(range.data() + 1, page_bytes()));  // none
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

// As before Linux 6.13, where each guard splits a mapping, of which a process has so many.
TEST(pages_death, guards_that_are_gone_take_no_room) {
  std::size_t mappings = 0;
  std::ifstream("/proc/sys/vm/max_map_count") >> mappings;
  if (mappings == 0 || mappings > 300'000)
    GTEST_SKIP() << "vm.max_map_count is more than can be used up here: " << mappings;
  const auto make_many = [mappings] {
    if (!strata::test::deny_calls({SYS_madvise}, EINVAL)) std::_Exit(42);
    for (std::size_t i = 0; i < mappings / 2; ++i) {
      page_range first(2 * page_bytes());
      first.guard(0, page_bytes());
      const page_range moved = std::move(first);
    }
    std::_Exit(42);
  };
  EXPECT_EXIT(make_many(), testing::ExitedWithCode(42), "");
}

TEST(pages_death, a_guard_outside_or_unaligned_is_our_bug) {
  page_range range(page_bytes());
  EXPECT_DEATH(range.guard(page_bytes(), page_bytes()), "STRATA_CHECK");
  EXPECT_DEATH(range.guard(1, page_bytes()), "STRATA_CHECK");
  EXPECT_DEATH(range.decommit(0, 1), "STRATA_CHECK");
}

// Nothing at all where the kernel cannot, which is not an error.
TEST(pages, many_get_memory_at_once) {
  const std::size_t page = page_bytes();
  page_range range(600 * page);
  const page_range::parts some{2 * page, 3 * page, page, 199};
  const std::size_t done = range.advise_all(some, page_range::advice::populate);
  ASSERT_TRUE(done == 0 || done == some.count) << done;
  std::vector<unsigned char> there(600);
  ASSERT_TRUE(range.residency(0, range.size(), there.data()));
  for (std::size_t i = 0; i < there.size(); ++i)
    EXPECT_EQ(there[i] != 0, done != 0 && i % 3 == 2 && i / 3 < some.count) << i;
}

TEST(pages_death, many_are_guarded_at_once) {
  const std::size_t page = page_bytes();
  page_range range(600 * page);
  const page_range::parts some{0, 3 * page, page, 200};
  const std::size_t done = range.advise_all(some, page_range::advice::guard);
  if (done == 0) GTEST_SKIP() << "this kernel cannot";
  ASSERT_EQ(done, some.count);
  for (std::size_t i = 0; i < some.count; ++i) {
    range.data()[(3 * i + 1) * page] = std::byte{1};
    range.data()[(3 * i + 3) * page - 1] = std::byte{1};
  }
  for (const std::size_t i : {0, 127, 128, 199})
    EXPECT_DEATH(const_cast<volatile std::byte&>(range.data()[3 * i * page]) = std::byte{1}, "");
  // Guards have no memory: only those before the first.
  range.guard(4 * page, page);
  EXPECT_EQ(range.advise_all({page, page, page, 10}, page_range::advice::populate), 2u);
}

TEST(pages_death, parts_outside_are_our_bug) {
  const std::size_t page = page_bytes();
  page_range range(4 * page);
  const auto populate = [&](page_range::parts some) {
    range.advise_all(some, page_range::advice::populate);
  };
  EXPECT_DEATH(populate({0, 2 * page, page, 3}), "STRATA_CHECK");
  EXPECT_DEATH(populate({4 * page, page, page, 1}), "STRATA_CHECK");
  EXPECT_DEATH(populate({0, page, 2 * page, 1}), "STRATA_CHECK");
  EXPECT_DEATH(populate({1, page, page, 1}), "STRATA_CHECK");
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
