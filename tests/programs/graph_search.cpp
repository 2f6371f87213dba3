// SPDX-License-Identifier: Apache-2.0
// Breadth-first searches: within a node, and over nodes with messages in batches. Both find the
// depths that a serial one finds.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <utility>
#include <vector>

#include "strata/group.hpp"
#include "workers_search.hpp"

namespace programs {
namespace {

// What one member has found of another one's vertices. It may be larger than a member keeps of what
// has not been received, so all receive between their sends; an empty message ends a step.
class outgoing {
 public:
  outgoing(strata::endpoint& from, strata::endpoint_id to, strata::message_tag step)
      : from_(from), to_(to), step_(step), batches_(1) {}
  // True: a message has left.
  bool add(vertex v) {
    batches_.back().push_back(v);
    if (batches_.back().size() < strata::eager_bytes_everywhere / sizeof(vertex)) return false;
    return leave();
  }
  void end() {
    if (!batches_.back().empty()) leave();
    leave();
  }
  void wait() { strata::wait_all(transfers_); }

 private:
  bool leave() {
    transfers_.push_back(from_.start_send(to_, step_, batches_.back()));
    batches_.emplace_back();
    return true;
  }
  strata::endpoint& from_;
  strata::endpoint_id to_;
  strata::message_tag step_;
  std::deque<std::vector<vertex>> batches_;  // which stay where they are
  std::vector<strata::transfer> transfers_;
};

// The depths of this member's vertices.
depths search_in_group(strata::group& all, const graph& mine, vertex root) {
  strata::endpoint& here = strata::this_thread::endpoint();
  const unsigned size = all.size();
  depths depth(mine.first.size() - 1, unreached);
  std::vector<vertex> frontier, found;
  const auto reach = [&](vertex v, std::uint32_t at) {
    if (std::exchange(depth[v / size], std::min(depth[v / size], at)) == unreached)
      found.push_back(v);
  };
  if (root % size == all.rank()) reach(root, 0);
  for (std::uint32_t step = 1;; ++step) {
    frontier.swap(found);
    found.clear();
    if (all.all_reduce(frontier.size(), std::plus<>()) == 0) return depth;
    unsigned ended = 0;
    const auto take = [&](const strata::message_info& next) {
      std::vector<vertex> batch(next.count_of<vertex>());
      here.receive(batch, next.source, step);
      for (const vertex v : batch) reach(v, step);
      if (batch.empty()) ++ended;
    };
    std::deque<outgoing> to;
    for (const strata::endpoint_id member : all.members()) to.emplace_back(here, member, step);
    for (const vertex v : frontier) {
      for (const vertex w : mine.of(v / size)) {
        if (!to[w % size].add(w)) continue;
        while (const auto next = here.probe(strata::any_endpoint, step)) take(*next);
      }
    }
    for (outgoing& one : to) one.end();
    while (ended < size) take(here.wait_probe(strata::any_endpoint, step));
    for (outgoing& one : to) one.wait();
  }
}

void search(strata::group& all, unsigned scale, vertex root) {
  const depths mine = search_in_group(all, make_graph(scale, all.rank(), all.size()), root);
  const auto parts = all.gather_any(strata::bytes_of(mine), 0);
  if (all.rank() != 0) return;
  const depths wanted = search_serially(make_graph(scale, 0, 1), root);
  for (vertex v = 0; v < wanted.size() - 1; ++v) {
    std::uint32_t depth = 0;
    std::memcpy(&depth, parts[v % all.size()].data() + v / all.size() * sizeof depth, sizeof depth);
    require(depth == wanted[v], "the depth of a vertex, over nodes");
  }
}

}  // namespace
}  // namespace programs

int main(int argc, char** argv) {
  using namespace programs;
  return run(argc, argv, [] {
    constexpr unsigned scale = 13;
    constexpr vertex root = 1;
    const graph g = make_graph(scale, 0, 1);
    require(search_by_workers(g, root) == search_serially(g, root), "the depths within a node");
    strata::run_group(
        2, [](strata::group& all, unsigned s, vertex r) { search(all, s, r); }, scale, root);
  });
}
