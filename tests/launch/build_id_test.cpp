// SPDX-License-Identifier: Apache-2.0
#include "launch/build_id.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace {

using strata::launch::build_id;
using strata::launch::build_id_in_notes;

std::vector<std::byte> note(std::uint32_t name_bytes, std::uint32_t data_bytes, std::uint32_t type,
                            const std::string& rest) {
  const std::uint32_t head[] = {name_bytes, data_bytes, type};
  std::vector<std::byte> bytes(sizeof head + rest.size());
  std::memcpy(bytes.data(), head, sizeof head);
  std::memcpy(bytes.data() + sizeof head, rest.data(), rest.size());
  return bytes;
}

TEST(build_id, of_this_program) {
  EXPECT_GE(build_id().size(), 16U);
  EXPECT_EQ(build_id().find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_EQ(build_id(), build_id());
}

TEST(build_id, is_found_behind_other_notes) {
  std::vector<std::byte> notes = note(4, 4, 1, std::string("GNU\0abcd", 8));
  const auto id = note(4, 2, 3, std::string("GNU\0\x0a\xff\0\0", 8));
  notes.insert(notes.end(), id.begin(), id.end());
  EXPECT_EQ(build_id_in_notes(notes, 4), "0aff");
}

TEST(build_id, broken_notes_hold_none) {
  const auto good = note(4, 2, 3, std::string("GNU\0\x0a\xff", 6));
  EXPECT_EQ(build_id_in_notes(good, 4), "0aff");
  for (std::size_t bytes = 0; bytes < good.size(); ++bytes) {
    const std::vector<std::byte> cut(good.begin(), good.begin() + static_cast<long>(bytes));
    EXPECT_EQ(build_id_in_notes(cut, 4), std::nullopt) << bytes;
  }
  EXPECT_EQ(build_id_in_notes(note(4, 0xffffffff, 3, std::string("GNU\0x", 5)), 4), std::nullopt);
  EXPECT_EQ(build_id_in_notes(note(0xffffffff, 4, 3, std::string("GNU\0x", 5)), 8), std::nullopt);
  EXPECT_EQ(build_id_in_notes(note(4, 2, 3, std::string("FOO\0xx", 6)), 4), std::nullopt);
}

}  // namespace
