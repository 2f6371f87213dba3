// SPDX-License-Identifier: Apache-2.0
// Names of endpoints: none comes again, however often a port is used.
#include "messages/port.hpp"

#include <gtest/gtest.h>

#include <cstddef>

namespace strata::messages {
namespace {

// Nothing is asked of it.
messenger& nobody() {
  alignas(std::max_align_t) static std::byte nothing[64];
  return *reinterpret_cast<messenger*>(nothing);
}

void close(port& p) {
  const std::lock_guard lock(p.lock);
  p.id = {};
}

TEST(ports, that_have_had_all_their_names_are_used_no_more) {
  port_table all;
  port& first = *all.open(0, nobody());
  const endpoint_id name = first.id;
  close(first);
  EXPECT_FALSE(all.give_back(first));
  first.generation = port_table::generations_max - 1;  // as if used so often
  port* const last = all.open(0, nobody());
  EXPECT_EQ(last, &first);
  const endpoint_id last_name = last->id;
  EXPECT_NE(last_name, name);
  close(*last);
  EXPECT_FALSE(all.give_back(*last));
  port* const other = all.open(0, nobody());
  EXPECT_NE(other, &first);
  EXPECT_EQ(all.find(name), &first) << "who has an old name finds that it is gone";
  EXPECT_FALSE(all.end());
  close(*other);
  EXPECT_TRUE(all.give_back(*other)) << "the last one that is open";
}

}  // namespace
}  // namespace strata::messages
