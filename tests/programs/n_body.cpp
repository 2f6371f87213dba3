// SPDX-License-Identifier: Apache-2.0
// Bodies that attract each other. Whoever moves them, workers or nodes, of which each moves its own
// and gets the places of all others, the same bits come out as serially, and about the forces that
// all pairs give.
#include <cmath>
#include <cstddef>
#include <vector>

#include "barnes_hut.hpp"
#include "strata/group.hpp"

namespace programs {
namespace {

std::vector<vec> simulate_in_group(strata::group& all, std::size_t n, unsigned steps) {
  const std::size_t each = n / all.size(), first = each * all.rank();
  std::vector<vec> places = places_at_first(n), speeds(each);
  for (unsigned i = 0; i < steps; ++i) {
    move(places, first, speeds, by_workers);
    const std::vector<vec> mine(places.begin() + static_cast<std::ptrdiff_t>(first),
                                places.begin() + static_cast<std::ptrdiff_t>(first + each));
    all.all_gather(mine, places);
  }
  return places;
}

void check_forces(std::size_t n) {
  const std::vector<vec> places = places_at_first(n);
  const auto root = make_cell(places, {}, 3, serially);
  for (std::size_t i = 0; i < n; i += 100) {
    vec exact;
    double largest = 0;  // if all pulled the same way
    for (const vec& other : places) {
      const vec one = pull(other, 1, places[i]);
      exact = exact + one;
      largest += std::sqrt(one.square());
    }
    const double error = std::sqrt((force(*root, places[i]) - exact).square());
    require(error < 1e-2 * largest, "a force");
  }
}

}  // namespace
}  // namespace programs

int main(int argc, char** argv) {
  using namespace programs;
  return run(argc, argv, [] {
    constexpr std::size_t n = 1'200;  // which 2, 4 and 6 members share equally
    constexpr unsigned steps = 2;
    check_forces(n);
    require(simulate(n, steps, by_workers) == simulate(n, steps, serially), "within a node");
    const auto work = [](strata::group& all, std::size_t count, unsigned times) {
      const std::vector<vec> places = simulate_in_group(all, count, times);
      require(all.rank() != 0 || places == simulate(count, times, serially), "over nodes");
    };
    strata::run_group(2, work, n, steps);
  });
}
