#include <cstdio>
#include <cstdlib>
#include <functional>
#include <strata/group.hpp>
#include <strata/launched.hpp>
#include <strata/options.hpp>
#include <strata/runtime.hpp>
#include <vector>

std::vector<bool> prime;        // on every node alike: made before its runtime
std::vector<unsigned> numbers;  // read by node 0, which tells the others

void make_table(unsigned limit) {
  prime.assign(limit, true);
  for (unsigned n = 0; n < 2 && n < limit; ++n) prime[n] = false;
  for (unsigned n = 2; n * n < limit; ++n)
    for (unsigned m = n * n; prime[n] && m < limit; m += n) prime[m] = false;
}

void count(strata::group& all) {
  numbers.resize(all.broadcast(numbers.size(), 0));  // the size of node 0, and then the content
  all.broadcast(numbers, 0);
  unsigned mine = 0;
  for (std::size_t i = all.rank(); i < numbers.size(); i += all.size())
    if (numbers[i] < prime.size() && prime[numbers[i]]) ++mine;
  const unsigned sum = all.all_reduce(mine, std::plus<>());
  if (all.rank() == 0) std::printf("%u of %zu numbers are prime\n", sum, numbers.size());
}

int main(int argc, char** argv) {
  const auto settings = strata::options::parse_or_exit(argc, argv);  // our flags leave argv
  if (argc != 2) {
    if (strata::launched_node().value_or(0) == 0) std::fprintf(stderr, "usage: input LIMIT\n");
    return 2;
  }
  make_table(static_cast<unsigned>(std::atoi(argv[1])));  // on every node, as a file would be read
  strata::runtime runtime(settings);                      // only node 0 goes on from here
  for (unsigned n = 0; std::scanf("%u", &n) == 1;) numbers.push_back(n);
  runtime.run([] { strata::run_group(1, [](strata::group& all) { count(all); }); });
}
