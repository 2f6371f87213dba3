// SPDX-License-Identifier: Apache-2.0
// Who wakes threads may be a handler that has interrupted malloc(): however many are ready by then,
// the queue of those asks for nothing there.
#include <vector>

#include "../common/refused_new.hpp"
#include "strata/detail/ready_queue.hpp"
#include "support.hpp"

namespace strata::test {
namespace {

TEST(without_memory_for_more_that_are_ready, the_queue_grows) {
  std::vector<detail::task> tasks(5000);
  detail::ready_queue queue;
  std::size_t pushed = 0;
  {
    const refused_new none(0);
    for (detail::task& t : tasks) pushed += queue.try_push(&t) ? 1 : 0;
  }
  EXPECT_EQ(pushed, tasks.size());
  for (detail::task& t : tasks) ASSERT_EQ(queue.pop(), &t);
  EXPECT_EQ(queue.pop(), nullptr);
}

}  // namespace
}  // namespace strata::test
