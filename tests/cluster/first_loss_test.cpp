// SPDX-License-Identifier: Apache-2.0
// Which of several nodes the program is told is lost. The test is node 0, all others, and the
// launcher.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cstdlib>
#include <functional>
#include <future>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "../common/require.hpp"
#include "cluster/engine/program_build.hpp"
#include "launch/messages.hpp"
#include "net/tcp/mesh.hpp"
#include "os/clock.hpp"
#include "small_job.hpp"
#include "strata/error.hpp"
#include "strata/fiber.hpp"
#include "strata/runtime.hpp"

namespace strata::cluster {
namespace {

using net::node_id;
using test::require;

constexpr node_id nodes_in_all = 3;

launch::job_description job_of(node_id n) {
  launch::job_description j = small_job(n, nodes_in_all);
  j.host_of = {0, 0, 0};
  j.workers = 1;
  j.transport = transport_choice::tcp;
  return j;
}

// The others, which say nothing, and the launcher.
class surroundings_of_node_0 {
 public:
  surroundings_of_node_0() {
    std::array<int, 2> ends{};
    require(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) == 0, "a line");
    line_ = os::descriptor(ends[0]);
    ::setenv(launch::job_fd_variable, std::to_string(ends[1]).c_str(), 1);
    say(launch::pack_welcome(job_of(0)));
  }
  void join() {
    std::vector<net::tcp::listener> doors;
    std::vector<launch::address> everybody(nodes_in_all);
    for (node_id n = 1; n < nodes_in_all; ++n) {
      doors.emplace_back("127.0.0.1", std::uint16_t{0}, std::size_t{0});
      everybody[n] = doors.back().address();
    }
    everybody[0] = hear_where_node_0_is();
    say(launch::pack_directory(everybody));
    std::vector<launch::address> only_0(nodes_in_all);
    only_0[0] = everybody[0];
    for (node_id n = 1; n < nodes_in_all; ++n) {
      const auto me = net::tcp::identity_in(job_of(n), program_build());
      auto sockets = net::tcp::connect_mesh(me, std::span(&doors[n - 1U], 1), only_0,
                                            os::now_ns() + no_limit_ns, {});
      to_0_.push_back(std::move(sockets[0]));
    }
  }
  // Node 0 closes its end when it has seen that.
  void close_and_wait(node_id n) const {
    const int fd = to_0_.at(n - 1U).get();
    ::shutdown(fd, SHUT_WR);
    std::array<char, 4096> block;
    pollfd more{fd, POLLIN, 0};
    do {
      ::poll(&more, 1, -1);
    } while (::recv(fd, block.data(), block.size(), 0) > 0);
  }
  void say_lost(node_id n) { say(launch::pack_lost({n, "was killed"})); }

 private:
  void say(const std::string& frame) const {
    require(
        ::send(line_.get(), frame.data(), frame.size(), 0) == static_cast<ssize_t>(frame.size()),
        "the launcher speaks");
  }
  [[nodiscard]] launch::address hear_where_node_0_is() const {
    launch::frame_reader said;
    std::array<char, 4096> block;
    for (;;) {
      const ssize_t bytes = ::recv(line_.get(), block.data(), block.size(), 0);
      require(bytes > 0, "node 0 speaks");
      said.add({block.data(), static_cast<std::size_t>(bytes)});
      if (const auto first = said.next()) return launch::unpack_reachable(first->payload).where;
    }
  }

  os::descriptor line_;
  std::vector<os::descriptor> to_0_;
};

options one_worker() {
  options o;
  o.workers = 1;
  return o;
}

// What node 0's program is told while `loses` happens, and it waits or computes.
std::optional<node_lost_error> loss_of(surroundings_of_node_0& all,
                                       const std::function<void()>& loses,
                                       const options& o = one_worker(),
                                       const std::function<void()>& meanwhile = {}) {
  std::promise<void> runs;
  std::thread others([&] {
    all.join();
    runs.get_future().wait();
    loses();
  });
  std::optional<node_lost_error> told;
  try {
    runtime rt(o);
    rt.run([&] {
      completion never;
      runs.set_value();
      if (meanwhile) meanwhile();
      never.wait();
    });
  } catch (const node_lost_error& e) {
    told = e;
  }
  others.join();
  return told;
}

// Node 2 ends because node 1 has, and node 0 sees its end first.
TEST(first_loss, is_the_one_that_the_launcher_tells_of) {
  std::optional<node_lost_error> told;
  // A machine on which the launcher is as late as this is asked again.
  for (std::int64_t took_ns = launch::word_of_loss_ns; took_ns >= launch::word_of_loss_ns;) {
    surroundings_of_node_0 all;
    told = loss_of(all, [&] {
      const std::int64_t began_ns = os::now_ns();
      all.close_and_wait(2);
      all.say_lost(1);
      took_ns = os::now_ns() - began_ns;
    });
    ASSERT_TRUE(told);
  }
  EXPECT_EQ(told->node(), 1) << told->what();
  EXPECT_STREQ(told->what(), "node 1 is lost: was killed");
}

TEST(first_loss, is_what_a_node_sees_itself_when_the_launcher_says_nothing) {
  surroundings_of_node_0 all;
  const auto told = loss_of(all, [&] {
    all.close_and_wait(2);
    all.close_and_wait(1);
  });
  ASSERT_TRUE(told);
  EXPECT_EQ(told->node(), 2) << told->what();
}

struct endless : threaded {
  void start() {
    token<endless>();
    terminate();
  }
};

// The worker is busy, and takes in what comes between two tasks; the receiver sleeps. It looks up
// when the launcher has had its time, and not at the next beat, six minutes later.
TEST(first_loss, is_told_in_time_where_workers_receive) {
  surroundings_of_node_0 all;
  options o = one_worker();
  o.reception = "polling";
  o.lost_after_ms = 3'600'000;
  const auto told = loss_of(
      all, [&] { all.close_and_wait(2); }, o, [] { token<endless>(); });
  ASSERT_TRUE(told);
  EXPECT_EQ(told->node(), 2) << told->what();
}

}  // namespace
}  // namespace strata::cluster
