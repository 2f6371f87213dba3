#include <strata/group.hpp>
#include <strata/runtime.hpp>

#include <cstdio>
#include <functional>

double estimate_pi(strata::group& all, long steps) {
  double sum = 0;
  for (long i = all.rank(); i < steps; i += all.size()) {
    const double x = (static_cast<double>(i) + 0.5) / static_cast<double>(steps);
    sum += 4 / (1 + x * x);
  }
  return all.all_reduce(sum, std::plus<>()) / static_cast<double>(steps);
}

int main(int argc, char** argv) {
  strata::runtime runtime(argc, argv);
  runtime.run([] {
    strata::run_group(4, [](strata::group& all) {
      const double pi = estimate_pi(all, 1'000'000);
      if (all.rank() == 0) std::printf("%.8f\n", pi);
    });
  });
}
