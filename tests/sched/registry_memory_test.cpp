// SPDX-License-Identifier: Apache-2.0
// A runtime for which there is no room in the list of all is refused when its workers have begun.
#include <new>

#include "../common/refused_new.hpp"
#include "sched/registry.hpp"
#include "sched/scheduler.hpp"
#include "support.hpp"

namespace strata::test {
namespace {

TEST(without_memory_for_its_entry, a_runtime_is_refused) {
  // So much is in the list then, and twice as much is asked for next.
  constexpr std::size_t full_bytes = 32 * 1024;
  detail::scheduler present(with_workers(1));
  {
    const refused_new no_more(full_bytes + 1);
    try {
      for (;;) detail::enter_registry(present);
    } catch (const std::bad_alloc&) {
    }
  }
  {
    const refused_new no_room(2 * full_bytes, 2 * full_bytes);
    EXPECT_THROW(detail::scheduler{with_workers(1)}, std::bad_alloc);
  }
  detail::leave_registry(present);
}

}  // namespace
}  // namespace strata::test
