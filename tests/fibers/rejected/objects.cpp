// SPDX-License-Identifier: Apache-2.0
// What calls on other nodes, branches and tokens take and return besides plain values, and what
// they do not, one for each value of REJECTED; with 0 all is well. As addresses.cpp: compiled by
// the tests only, never run.
#include <strata/fiber.hpp>
#include <strata/fork_join.hpp>
#include <strata/remote_thread.hpp>
#if REJECTED != 1 && REJECTED != 2
#include <cereal/types/string.hpp>
#include <strata/serialize.hpp>
#endif
#if REJECTED == 0 || REJECTED > 4
#include <cereal/types/map.hpp>
#include <cereal/types/vector.hpp>
#endif
#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

struct point {
  double x, y;
};
struct unknown {
  std::string text;
};
struct without_default {
  explicit without_default(int n) : text(static_cast<std::size_t>(n), ' ') {}
  std::string text;
  template <class Archive>
  void serialize(Archive& a) {
    a(text);
  }
};
using table = std::array<double, 5000>;

inline constexpr auto takes_anything = [](const auto&...) {};
point middle(const std::string&, const point& p, const std::vector<int>&) { return p; }
std::string text() { return "text"; }

struct takes_text : strata::threaded {
  std::string content;
  table numbers;
  void start() { terminate(); }
};
struct takes_unknown : strata::threaded {
  unknown content;
  void start() { terminate(); }
};

void refused() {
  const strata::on_node there{1};
  static_cast<void>(takes_anything);
#if REJECTED == 0
  static_cast<void>(strata::call<middle>(there, std::string(), point{}, std::vector<int>()));
  static_cast<void>(strata::call<text>(there));
  strata::call<takes_anything>(there, std::map<int, std::vector<std::string>>(), table());
  strata::remote_thread(there, strata::call<text>()).join();
  static_cast<void>(strata::fork2join([] {}, strata::call<text>()));
  static_cast<void>(strata::fork2join(strata::call<text>(), strata::call<takes_anything>(table())));
  strata::token<takes_text>(std::string(), table());
  strata::invoke<takes_text>(1, std::string(), table());
#elif REJECTED == 1
  strata::call<takes_anything>(there, std::string());
#elif REJECTED == 2
  strata::remote_thread(there, strata::call<text>()).join();
#elif REJECTED == 3
  strata::call<takes_anything>(there, std::vector<int>());
#elif REJECTED == 4
  strata::call<takes_anything>(there, unknown());
#elif REJECTED == 5
  strata::call<takes_anything>(there, std::vector<unknown>());
#elif REJECTED == 6
  strata::call<takes_anything>(there, without_default(1));
#elif REJECTED == 7
  strata::call<takes_anything>(there, std::vector<int*>());
#elif REJECTED == 8
  strata::call<takes_anything>(there, std::map<int, std::vector<std::string_view>>());
#elif REJECTED == 9
  strata::fork2join([] {}, strata::call<takes_anything>(unknown()));
#elif REJECTED == 10
  strata::token<takes_unknown>(unknown());
#elif REJECTED == 11
  strata::invoke<takes_unknown>(1, unknown());
#endif
}
