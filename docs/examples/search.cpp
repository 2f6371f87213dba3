#include <cstdio>
#include <functional>
#include <strata/group.hpp>
#include <strata/runtime.hpp>
#include <vector>
constexpr unsigned vertices = 100'000, edges_each = 4;

// Where an edge of v leads. Vertex v belongs to the member of rank v % size.
unsigned neighbour(unsigned v, unsigned edge) {
  unsigned long x = (v * 8UL + edge + 1) * 0x9E3779B97F4A7C15;
  x = (x ^ x >> 29) * 0xBF58476D1CE4E5B9;
  return static_cast<unsigned>((x ^ x >> 32) % vertices);
}

void search(strata::group& all) {
  const unsigned size = all.size(), rank = all.rank();
  strata::endpoint& mine = strata::this_thread::endpoint();
  const auto members = all.members();
  std::vector<bool> seen(vertices / size + 1);  // of its own vertices
  std::vector<unsigned> frontier;
  const auto reach = [&](unsigned v) {
    if (!seen[v / size]) frontier.push_back(v);
    seen[v / size] = true;
  };
  if (rank == 0) reach(0);
  for (unsigned depth = 0;; ++depth) {
    const unsigned wide = all.all_reduce(static_cast<unsigned>(frontier.size()), std::plus<>());
    if (rank == 0) std::printf("depth %2u: %u\n", depth, wide);
    if (wide == 0) return;
    std::vector<std::vector<unsigned>> next(size);  // to whom they belong
    for (const unsigned v : frontier) {
      for (unsigned e = 0; e < edges_each; ++e) {
        const unsigned w = neighbour(v, e);
        next[w % size].push_back(w);
      }
    }
    frontier.clear();
    std::vector<strata::transfer> sends;  // all send at once, so nobody waits in a send
    for (unsigned to = 0; to < size; ++to)
      sends.push_back(mine.start_send(members[to], depth, next[to]));
    for (unsigned from = 0; from < size; ++from) {  // in the order in which they come
      const strata::message_info m = mine.wait_probe(strata::any_endpoint, depth);
      std::vector<unsigned> found(m.count_of<unsigned>());
      mine.receive(found, m.source, depth);
      for (const unsigned v : found) reach(v);
    }
    strata::wait_all(sends);
  }
}

int main(int argc, char** argv) {
  strata::runtime runtime(argc, argv);
  runtime.run([] { strata::run_group(2, [](strata::group& all) { search(all); }); });
}
