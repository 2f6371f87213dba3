#include <atomic>
#include <cstdio>
#include <strata/parallel.hpp>
#include <strata/per_worker.hpp>
#include <strata/runtime.hpp>
#include <vector>
constexpr unsigned vertices = 100'000, edges_each = 4;

unsigned neighbour(unsigned v, unsigned edge) {
  unsigned long x = (v * 8UL + edge + 1) * 0x9E3779B97F4A7C15;
  x = (x ^ x >> 29) * 0xBF58476D1CE4E5B9;
  return static_cast<unsigned>((x ^ x >> 32) % vertices);
}

int main(int argc, char** argv) {
  strata::runtime runtime(argc, argv);
  runtime.run([] {
    std::vector<std::atomic<bool>> seen(vertices);
    strata::per_worker<std::vector<unsigned>> found;
    std::vector<unsigned> frontier{0};
    seen[0] = true;
    const auto visit = [&](std::size_t i) {
      for (unsigned e = 0; e < edges_each; ++e) {
        const unsigned w = neighbour(frontier[i], e);
        // Relaxed: who comes first takes w, and what it writes is read after the loop. The load
        // spares most of those who come later the write.
        if (seen[w].load(std::memory_order_relaxed)) continue;
        if (seen[w].exchange(true, std::memory_order_relaxed)) continue;
        found.use([w](std::vector<unsigned>& mine) { mine.push_back(w); });
      }
    };
    for (unsigned depth = 0; !frontier.empty(); ++depth) {
      std::printf("depth %2u: %zu\n", depth, frontier.size());
      strata::parallel_for(std::size_t{0}, frontier.size(), visit);
      frontier.clear();
      found.for_each([&](std::vector<unsigned>& part) {
        frontier.insert(frontier.end(), part.begin(), part.end());
        part.clear();
      });
    }
  });
}
