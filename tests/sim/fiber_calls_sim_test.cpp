// SPDX-License-Identifier: Apache-2.0
// Fibers on simulated nodes that begin calls on other ones. They cannot wait for them: that is
// refused, and what has been called stays until it is answered.
#include <cereal/types/string.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

#include "messages/messenger.hpp"
#include "program_job.hpp"
#include "strata/fiber.hpp"
#include "strata/remote_thread.hpp"
#include "strata/serialize.hpp"
#include "strata/shared_stop.hpp"

namespace strata::test {
namespace {

using net::node_id;

struct runs_in_a_fiber : threaded {
  const std::function<void()>* body;
  bool* has_ended;
  void start() {
    (*body)();
    *has_ended = true;
    terminate();
  }
};
// By a thread of the program, which goes on when body() has ended.
void in_a_fiber(program_job& p, const std::function<void()>& body) {
  bool has_ended = false;
  invoke<runs_in_a_fiber>(strata::node_id(), local_address(&body), local_address(&has_ended));
  while (!has_ended) p.pause(10'000);
}

unsigned calls_ended;
void take_a_while() {
  this_thread::sleep_for(std::chrono::milliseconds(1));
  ++calls_ended;
}
void take_a_text(const std::string&) { take_a_while(); }

TEST(simulated_calls_of_fibers, stay_joinable_where_nobody_can_wait) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    program_job p(seed, {.nodes = 2});
    calls_ended = 0;
    p.begin(0, [&] {
      remote_thread plain, object;
      in_a_fiber(p, [&] {
        plain = remote_thread(1, call<take_a_while>());
        object = remote_thread(1, call<take_a_text>(std::string("text")));
        for (remote_thread* const t : {&plain, &object}) {
          EXPECT_THROW(t->join(), misuse_error);
          EXPECT_TRUE(t->joinable());
        }
      });
      plain.join();
      object.join();
      EXPECT_EQ(calls_ended, 2U);
      // What has ended need not be waited for.
      plain = remote_thread(1, call<take_a_while>());
      while (calls_ended != 3) p.pause(100'000);
      this_thread::sleep_for(std::chrono::seconds(1));
      in_a_fiber(p, [&] { EXPECT_NO_THROW(plain.join()); });
      EXPECT_FALSE(plain.joinable());
    });
    p.run();
  }
}

TEST(simulated_calls_of_fibers, go_on_when_an_exception_passes_their_threads) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    program_job p(seed, {.nodes = 2});
    calls_ended = 0;
    p.begin(0, [&] {
      in_a_fiber(p, [] {
        try {
          const remote_thread plain(1, call<take_a_while>());
          const remote_thread object(1, call<take_a_text>(std::string("text")));
          throw std::range_error("passes by");
        } catch (const std::range_error&) {
        }
      });
      p.job->node(0).pause(100'000);
      EXPECT_EQ(calls_ended, 0U);
      EXPECT_EQ(p.job->node(0).stacks(), 3U) << "this thread, and one that waits for each";
    });
    p.run([&] { return p.stacks() == 0; });
    EXPECT_EQ(calls_ended, 2U);
  }
}

struct owns_a_stop : threaded {
  stop_handle* handle;
  slot_ptr* end;
  shared_stop stop;
  void start() {
    *handle = stop.handle();
    *end = to_sptr(OVER);
  }
  void over() { terminate(); }
  fiber<&owns_a_stop::over> OVER{this, 1};
};

// Its last fiber cannot wait, and those that hear of the end are not waited for.
TEST(simulated_calls_of_fibers, tell_of_the_end_of_a_stop_that_a_frame_owns) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    constexpr node_id nodes = 3;
    program_job p(seed, {.nodes = nodes});
    stop_handle handle;
    slot_ptr end;
    unsigned following = 0;
    p.begin(0, [&] {
      invoke<owns_a_stop>(0, local_address(&handle), local_address(&end));
      while (following != nodes - 1) p.pause(100'000);
      sync(end);
      p.job->node(0).pause(9'000);  // less than the way there and back
      EXPECT_EQ(p.job->node(0).stacks(), 1U) << "this thread alone";
    });
    for (node_id n = 1; n < nodes; ++n) {
      p.begin(n, [&] {
        while (!end) p.pause(100'000);
        EXPECT_FALSE(handle.token().stop_requested());
        ++following;
      });
    }
    const auto all_have_heard = [&] {
      for (node_id n = 1; n < nodes; ++n) {
        if (p.job->node(n).messenger.stops.size() != 0) return false;
      }
      return p.stacks() == 0;
    };
    p.run([&] { return following == nodes - 1 && all_have_heard(); });
  }
}

TEST(simulated_calls_of_fibers, leave_nothing_of_a_stop_that_they_cannot_ask_for) {
  for (const std::uint64_t seed : seeds()) {
    STRATA_WITH_SEED(seed);
    program_job p(seed, {.nodes = 2});
    auto& stops = p.job->node(1).messenger.stops;
    stop_handle handle;
    bool is_made = false, has_token = false, is_over = false;
    p.begin(0, [&] {
      shared_stop stop;
      handle = stop.handle();
      is_made = true;
      while (!has_token) p.pause(100'000);
      EXPECT_TRUE(stop.request());
      while (!is_over) p.pause(100'000);
    });
    p.begin(1, [&] {
      while (!is_made) p.pause(100'000);
      in_a_fiber(p, [&] { EXPECT_THROW((void)handle.token(), misuse_error); });
      EXPECT_EQ(stops.size(), 0U);
      const stop_token mine = handle.token();
      EXPECT_EQ(stops.size(), 1U);
      has_token = true;
      while (!mine.stop_requested()) p.pause(100'000);
      in_a_fiber(p, [&] { EXPECT_TRUE(handle.token().stop_requested()); });
      is_over = true;
    });
    p.run([&] { return stops.size() == 0; });  // that it has ended is heard in the end
  }
}

}  // namespace
}  // namespace strata::test
