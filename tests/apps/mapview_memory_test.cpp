// SPDX-License-Identifier: Apache-2.0
// Want of memory while a node says that its part of a view is done: it is said later.
#include <gtest/gtest.h>

#include <new>
#include <optional>
#include <strata/message.hpp>
#include <strata/runtime.hpp>
#include <strata/thread.hpp>

#include "../common/refused_new.hpp"
#include "apps/mapview/cluster_serving.hpp"
#include "messages/request.hpp"

namespace {

using namespace mapview;
using strata::test::refused_new;

// A part without tiles: what it says is its end, to itself.
TEST(mapview_memory, a_part_ends_when_there_is_some_again) {
  strata::options one;
  one.workers = 1;
  strata::runtime rt(one);
  rt.run([] {
    // The worker has no memory for a message that is not awaited, until `others` has its turn.
    std::optional<refused_new> no_arrival;
    strata::thread others([&] { no_arrival.reset(); });
    no_arrival.emplace(sizeof(strata::messages::arrival), sizeof(strata::messages::arrival));
    strata::endpoint any;
    EXPECT_THROW(any.send_value(any.id(), 0, 1), std::bad_alloc);
    serve_part({});
    EXPECT_FALSE(no_arrival);
    others.join();
  });
}

}  // namespace
