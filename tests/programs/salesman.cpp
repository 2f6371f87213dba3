// SPDX-License-Identifier: Apache-2.0
// The shortest way through some cities and back, by branch and bound over nodes whose bound is the
// best that any of them has found; then any way that is no longer, which stops all when one has it.
// M. Held and R. Karp's recurrence, 1962, doi:10.1137/0110015, says what it has to be.
#include <algorithm>
#include <array>
#include <bit>
#include <climits>
#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "programs.hpp"
#include "strata/call.hpp"
#include "strata/shared_best.hpp"
#include "strata/shared_stop.hpp"
#include "strata/task_scope.hpp"

namespace programs {
namespace {

constexpr unsigned cities = 11;
using distances = std::array<std::array<int, cities>, cities>;

distances make_distances() {
  std::array<double, 2 * cities> at{};
  for (unsigned i = 0; i < 2 * cities; ++i) at[i] = static_cast<double>(mixed(i) % 1000);
  distances d{};
  for (unsigned a = 0; a < cities; ++a)
    for (unsigned b = 0; b < cities; ++b)
      d[a][b] = static_cast<int>(std::hypot(at[2 * a] - at[2 * b], at[2 * a + 1] - at[2 * b + 1]));
  return d;
}
const distances between = make_distances();  // of each node

// Along all cities of a set that end in one of them.
int shortest_serially() {
  constexpr unsigned others = cities - 1, sets = 1U << others;
  std::vector<std::array<int, others>> best(sets);
  for (auto& b : best) b.fill(INT_MAX / 2);
  for (unsigned i = 0; i < others; ++i) best[1U << i][i] = between[others][i];
  for (unsigned set = 1; set < sets; ++set) {
    for (unsigned last = 0; last < others; ++last) {
      for (unsigned next = 0; next < others; ++next) {
        if ((set >> next & 1U) != 0) continue;
        int& known = best[set | 1U << next][next];
        known = std::min(known, best[set][last] + between[last][next]);
      }
    }
  }
  int shortest = INT_MAX;
  for (unsigned i = 0; i < others; ++i)
    shortest = std::min(shortest, best[sets - 1][i] + between[i][others]);
  return shortest;
}

using shortest_yet = strata::shared_best<int, std::greater<>>;
using shortest_handle = strata::best_handle<int, std::greater<>>;

// A way as far as it goes: a value that travels.
struct way {
  std::uint32_t visited = 1U << (cities - 1);
  std::uint32_t last = cities - 1;
  int length = 0;
};

// What is left is at least the shortest road from each city that has to be left.
int at_least(const way& w) {
  int sum = w.length;
  for (unsigned a = 0; a < cities; ++a) {
    if (a != w.last && (w.visited >> a & 1U) != 0) continue;
    int shortest = INT_MAX;
    for (unsigned b = 0; b < cities; ++b)
      if (b != a) shortest = std::min(shortest, between[a][b]);
    sum += shortest;
  }
  return sum;
}

// The ways on from here, the shortest step first.
std::vector<way> next_of(const way& w) {
  std::vector<way> all;
  for (unsigned next = 0; next < cities; ++next) {
    if ((w.visited >> next & 1U) == 0)
      all.push_back({w.visited | 1U << next, next, w.length + between[w.last][next]});
  }
  std::ranges::sort(all, {}, &way::length);
  return all;
}

// Of one of the searches. Ways of so many cities and more stay with one task.
constexpr int cities_of_a_task = 4;
void search(way w, shortest_handle shared, int good_enough, strata::stop_handle stop) {
  const strata::stop_token enough = stop.token();
  const strata::best_here<int, std::greater<>> shortest = shared.here();
  if (enough.stop_requested() || at_least(w) >= shortest.value()) return;
  const std::vector<way> all = next_of(w);
  if (all.empty()) {
    const int length = w.length + between[w.last][cities - 1];
    shortest.improve(length);
    if (length <= good_enough) stop.request();
  } else if (std::popcount(w.visited) >= cities_of_a_task) {
    for (const way& one : all) search(one, shared, good_enough, stop);
  } else {
    strata::task_scope scope;
    for (const way& one : all) scope.spawn(strata::call<search>(one, shared, good_enough, stop));
    scope.sync();
  }
}

// The shortest that has been found anywhere.
int shortest(int good_enough, strata::shared_stop& stop) {
  shortest_yet best(INT_MAX);
  search({}, best.handle(), good_enough, stop.handle());
  return best.of_all_nodes();
}

}  // namespace
}  // namespace programs

int main(int argc, char** argv) {
  using namespace programs;
  return run(argc, argv, [] {
    const int wanted = shortest_serially();
    strata::shared_stop never, when_good;
    require(shortest(0, never) == wanted, "the shortest way");
    require(!never.token().stop_requested(), "a search that goes to its end");
    const int limit = wanted + wanted / 10;
    require(shortest(limit, when_good) <= limit, "a good way");
    require(when_good.token().stop_requested(), "a search that is stopped");
  });
}
