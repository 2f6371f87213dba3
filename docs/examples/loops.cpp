#include <algorithm>
#include <atomic>
#include <cstdio>
#include <functional>
#include <list>
#include <stop_token>
#include <strata/parallel.hpp>
#include <strata/runtime.hpp>
#include <vector>

// Steps until n is 1, halved where it is even and else tripled, plus one: for some n many more.
int steps_of(unsigned long n) {
  int steps = 0;
  for (; n != 1; ++steps) n = n % 2 == 0 ? n / 2 : 3 * n + 1;
  return steps;
}

int main(int argc, char** argv) {
  strata::runtime runtime(argc, argv);
  runtime.run([] {
    std::vector<int> steps(100'001);
    strata::parallel_for(1U, 100'001U, [&](unsigned n) { steps[n] = steps_of(n); });
    std::printf("up to 100000: %d steps\n", *std::ranges::max_element(steps));

    // Every element of a container, and all of them together.
    std::list<unsigned long> some{27, 97, 871, 6'171};
    strata::parallel_for_each(some, [](unsigned long& n) { n = steps_of(n); });
    const long all = strata::parallel_reduce(steps, 0L, std::identity(), std::plus<>());
    std::printf("from 27: %lu steps; from all up to 100000: %ld\n", some.front(), all);

    // A loop in a loop: an idle worker takes rows, or a part of the only one that is left.
    std::vector<std::vector<int>> table(3, std::vector<int>(40'000));
    strata::parallel_for(0U, 3U, [&](unsigned row) {
      strata::parallel_for(0U, 40'000U, [&](unsigned column) {
        table[row][column] = steps_of(row * 40'000 + column + 1);
      });
    });
    std::printf("in the last row: %d steps\n", *std::ranges::max_element(table[2]));

    // Until one of 500 steps is found: a stop is seen between two steps of the loop.
    std::stop_source found;
    std::atomic<unsigned> such{0};
    const auto look = [&](unsigned n) {
      if (steps_of(n) < 500) return;
      such = n;
      found.request_stop();
    };
    strata::parallel_for(found.get_token(), 1U, 1'000'000U, look, strata::grain{100});
    std::printf("one of 500 steps is %s\n", such == 0 ? "not there" : "there");
  });
}
