// SPDX-License-Identifier: Apache-2.0
// Who waits for what is on its way cannot be refused: it takes no memory.
#include "../common/refused_new.hpp"
#include "strata/blocking.hpp"
#include "strata/fiber.hpp"
#include "support.hpp"

namespace strata::test {
namespace {

TEST(without_memory, signals_are_awaited) {
  runtime rt(with_workers(1));
  rt.run([] {
    completion done;
    const refused_new all(0);
    sync(done.sptr());
    done.wait();
  });
}

// The process's first: nothing of what makes such calls is there.
TEST(without_memory, a_blocking_call_stops_its_worker) {
  bool has_run = false;
  runtime rt(with_workers(1));
  rt.run([&] {
    const refused_new all(0);
    blocking([&] { has_run = true; });
  });
  EXPECT_TRUE(has_run);
}

}  // namespace
}  // namespace strata::test
