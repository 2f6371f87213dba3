#include <array>
#include <cstdio>
#include <strata/parallel.hpp>
#include <strata/per_worker.hpp>
#include <strata/runtime.hpp>
using counts = std::array<long, 24>;  // of vertices, by depth

unsigned long mixed(unsigned long x) {
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9;
  return x ^ x >> 27;
}

// A tree that nobody knows before: a vertex has none to three children.
void visit(unsigned long vertex, unsigned depth, strata::per_worker<counts>& seen) {
  seen.use([depth](counts& mine) { ++mine[depth]; });
  if (depth + 1 == counts().size()) return;
  const auto children = static_cast<unsigned>(mixed(vertex) >> 40) % 4;
  strata::parallel_for(0U, children,
                       [&](unsigned i) { visit(mixed(vertex) * 4 + i + 1, depth + 1, seen); });
}

int main(int argc, char** argv) {
  strata::runtime runtime(argc, argv);
  strata::per_worker<counts> seen;
  runtime.run([&] { visit(5, 0, seen); });
  const counts all = seen.combine(counts(), [](counts sum, const counts& one) {
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += one[i];
    return sum;
  });
  std::printf("%ld vertices at depth 10, %ld at depth 23\n", all[10], all[23]);
}
