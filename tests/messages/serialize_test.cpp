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
#include "strata/fork_join.hpp"
#include "strata/remote_thread.hpp"

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
    send_object(a, b.id(), 4, out);
    std::map<std::string, shape> in;
    const message_info m = receive_object_into(b, in);
    EXPECT_EQ(in, out);
    EXPECT_EQ(m.source, a.id());
    EXPECT_EQ(m.tag, 4U);
    a.send_value(b.id(), 5, 'x');
    EXPECT_THROW(receive_object_into(b, in), serialization_error);
    EXPECT_EQ(in, out) << "as it was";
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

std::size_t letters(const packed<std::vector<std::string>>& words) {
  std::size_t n = 0;
  for (const std::string& w : words.get()) n += w.size();
  return n;
}
packed<std::string, 20> doubled(const packed<std::string, 10>& s) {
  return packed<std::string, 20>(s.get() + s.get());
}

TEST(objects, are_arguments_and_results_of_calls) {
  runtime rt(test::with_workers(2));
  rt.run([] {
    const packed words(std::vector<std::string>{"one", "two", "three"});
    const auto [here, there] = fork2join([&] { return letters(words); }, call<letters>(words));
    EXPECT_EQ(here, 11U);
    EXPECT_EQ(there, 11U);
    EXPECT_EQ(call<doubled>(on_node{0}, packed<std::string, 10>("ab")).get(), "abab");
    EXPECT_THROW((packed<std::string, 10>("far too long")), misuse_error);
    EXPECT_THROW((void)(packed<std::string, 10>().get()), serialization_error);
  });
}

}  // namespace
