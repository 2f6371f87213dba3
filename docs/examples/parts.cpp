#include <algorithm>
#include <cstdio>
#include <strata/call.hpp>
#include <strata/parallel.hpp>
#include <strata/runtime.hpp>
#include <strata/task_scope.hpp>
#include <vector>

int steps_of(unsigned long n) {
  int steps = 0;
  for (; n != 1; ++steps) n = n % 2 == 0 ? n / 2 : 3 * n + 1;
  return steps;
}

// A part of the range, by the workers of the node that makes this call.
int longest(unsigned first, unsigned last) {
  return strata::parallel_reduce(
      first, last, 0, [](unsigned n) { return steps_of(n); },
      [](int a, int b) { return std::max(a, b); });
}

int main(int argc, char** argv) {
  strata::runtime runtime(argc, argv);
  runtime.run([] {
    constexpr unsigned parts = 50, each = 20'000;  // more parts than nodes: they are not alike
    strata::task_scope scope;
    std::vector<strata::spawned<int>> results;
    for (unsigned i = 0; i < parts; ++i)
      results.push_back(scope.spawn(strata::call<longest>(i * each + 1, (i + 1) * each + 1)));
    scope.sync();
    int most = 0;
    for (strata::spawned<int>& r : results) most = std::max(most, r.get());
    std::printf("%d steps\n", most);
  });
}
