#include <algorithm>
#include <cstdio>
#include <strata/group.hpp>
#include <strata/parallel.hpp>
#include <strata/runtime.hpp>

int steps_of(unsigned long n) {
  int steps = 0;
  for (; n != 1; ++steps) n = n % 2 == 0 ? n / 2 : 3 * n + 1;
  return steps;
}

// One member a node, which shares its part out among the node's workers.
void longest(strata::group& all, unsigned last) {
  const auto larger = [](int a, int b) { return std::max(a, b); };
  const unsigned part = last / all.size();
  const unsigned begin = all.rank() * part + 1;
  const unsigned end = all.rank() + 1 == all.size() ? last + 1 : begin + part;
  const int here = strata::parallel_reduce(
      begin, end, 0, [](unsigned n) { return steps_of(n); }, larger);
  const int anywhere = all.all_reduce(here, larger);
  if (all.rank() == 0) std::printf("%u members: %d steps\n", all.size(), anywhere);
}

int main(int argc, char** argv) {
  strata::runtime runtime(argc, argv);
  runtime.run([] {
    strata::run_group(
        1, [](strata::group& all, unsigned last) { longest(all, last); }, 1'000'000U);
  });
}
