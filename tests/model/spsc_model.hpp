// SPDX-License-Identifier: Apache-2.0
// One pushes, one pops, and somebody asks how many there are. Each item comes out once, in order,
// with what was written to it before; blocks go back and forth, and none is lost.
#pragma once
#include "explore.hpp"
#include "mutations.hpp"
//
#include <atomic>

#include "sync/spsc_queue.hpp"

namespace strata::model {

template <template <class> class Atomic = model_atomic>
struct pushed_and_popped : rl::test_suite<pushed_and_popped<Atomic>, 3> {
  // So few in a block that some are given back, taken again, and deleted because there is one.
  static constexpr std::size_t in_block = 1, items = 3;

  detail::spsc_queue<rl::var<int>, Atomic, in_block> queue;
  rl::var<int> item[items];

  void push_all() {
    for (std::size_t i = 0; i < items; ++i) {
      item[i](RL_INFO) = static_cast<int>(i) + 1;
      queue.push(&item[i]);
    }
  }
  void pop_all() {
    for (std::size_t i = 0; i < items;) {
      rl::var<int>* const got = queue.pop();
      if (got == nullptr) {
        rl::yield(1, RL_INFO);
        continue;
      }
      RL_ASSERT(got == &item[i]);
      RL_ASSERT(static_cast<int>((*got)(RL_INFO)) == static_cast<int>(i) + 1);
      ++i;
    }
    RL_ASSERT(queue.pop() == nullptr);
    RL_ASSERT(queue.size() == 0);
  }

  void thread(unsigned self) {
    if (self == 0) return push_all();
    if (self == 1) return pop_all();
    RL_ASSERT(queue.size() <= items);
  }
};

}  // namespace strata::model
