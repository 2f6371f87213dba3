// SPDX-License-Identifier: Apache-2.0
#include "strata/serialize.hpp"

#include <gtest/gtest.h>

#include <cereal/types/map.hpp>
#include <cereal/types/string.hpp>
#include <cereal/types/vector.hpp>
#include <map>
#include <string>
#include <vector>

#include "../sched/support.hpp"

namespace {

using namespace strata;

struct shape {
  std::string name;
  std::vector<double> sides;
  template <class Archive>
  void serialize(Archive& a) {
    a(name, sides);
  }
  friend bool operator==(const shape&, const shape&) = default;
};

TEST(objects, travel_as_messages) {
  runtime rt(test::with_workers(2));
  rt.run([] {
    endpoint a, b;
    const std::map<std::string, shape> out{{"square", {"four", {1, 1, 1, 1}}}, {"none", {}}};
    send_object(a, b.id(), 3, out);
    EXPECT_EQ((receive_object<std::map<std::string, shape>>(b, a.id(), 3)), out);
  });
}

TEST(objects, are_not_made_of_other_bytes) {
  std::vector<std::byte> bytes = serialized(shape{"triangle", {3, 4, 5}});
  EXPECT_EQ(deserialized<shape>(bytes), (shape{"triangle", {3, 4, 5}}));
  for (std::size_t n = 0; n < bytes.size(); ++n)
    EXPECT_THROW(deserialized<shape>(std::span(bytes).first(n)), serialization_error) << n;
  bytes.push_back(std::byte{});
  EXPECT_THROW(deserialized<shape>(bytes), serialization_error);
}

}  // namespace
