// SPDX-License-Identifier: Apache-2.0
// Groups within one process, for their tests.
#pragma once
#include <vector>

#include "../sched/support.hpp"
#include "strata/group.hpp"
#include "strata/thread.hpp"

namespace strata::test {

// Calls f(rank, endpoint, list of all) in n threads of this process.
template <class F>
void with_endpoints(unsigned n, F&& f) {
  std::vector<endpoint> ends(n);
  std::vector<endpoint_id> list;
  for (const endpoint& e : ends) list.push_back(e.id());
  std::vector<thread> threads;
  for (unsigned i = 0; i < n; ++i) threads.emplace_back([&, i] { f(i, ends[i], list); });
  for (thread& t : threads) t.join();
}

// Calls f(group) in n threads of this process.
template <class F>
void in_group_of(unsigned n, F&& f) {
  with_endpoints(n, [&](unsigned rank, endpoint& mine, const std::vector<endpoint_id>& list) {
    group g(mine, list);
    EXPECT_EQ(g.rank(), rank);
    EXPECT_EQ(g.size(), n);
    f(g);
  });
}

class groups : public testing::TestWithParam<unsigned> {
 protected:
  template <class F>
  static void run(F&& f) {
    runtime rt(with_workers(GetParam()));
    rt.run(f);
  }
  // Of every size; where that takes long, of some.
  template <class F>
  static void in_all_sizes(F&& f) {
    run([&] {
      for (unsigned n = 1; n <= 17; n += scaled(1U, 1 + n / 4)) in_group_of(n, f);
    });
  }
};

}  // namespace strata::test
