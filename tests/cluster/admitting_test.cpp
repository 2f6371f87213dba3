// SPDX-License-Identifier: Apache-2.0
// A node that cannot let a newcomer in. The test is the launcher, and the node a child of it.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>
#include <vector>

#include "../common/refuse_threads.hpp"
#include "../common/slow_builds.hpp"
#include "launch/messages.hpp"
#include "os/descriptor.hpp"
#include "small_job.hpp"
#include "strata/runtime.hpp"

namespace strata::cluster {
namespace {

using launch::frame_kind;

launch::job_description growing_job() {
  launch::job_description j = small_job(0, 1);
  j.capacity = 3;
  j.elastic = true;
  j.host_of = {0};
  j.workers = 1;
  j.transport = transport_choice::tcp;
  return j;
}

// The launcher's end of the line to a node that has joined and has no threads left.
class line_to_node {
 public:
  line_to_node() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(ends[0]);
      be_node(ends[1]);
    }
    ::close(ends[1]);
    line_ = os::descriptor(ends[0]);
    say(launch::pack_welcome(growing_job()));
    const auto first = hear();
    EXPECT_TRUE(first && first->kind == frame_kind::reachable);
    if (first) say(launch::pack_directory({launch::unpack_reachable(first->payload).where}));
    // It has said that now.
    const auto second = hear();
    EXPECT_TRUE(second && second->kind == frame_kind::missed);
  }
  void say(const std::string& bytes) const {
    EXPECT_EQ(::send(line_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  // None: the node has ended.
  std::optional<launch::frame> hear() {
    std::array<char, 4096> block;
    for (;;) {
      if (auto next = said_.next()) return next;
      const ssize_t bytes = ::recv(line_.get(), block.data(), block.size(), 0);
      if (bytes <= 0) return std::nullopt;
      said_.add({block.data(), static_cast<std::size_t>(bytes)});
    }
  }
  // The launcher is gone, and so the node ends. Returns how.
  int end() {
    ::shutdown(line_.get(), SHUT_WR);
    EXPECT_FALSE(hear()) << "it says something";
    int status = 0;
    EXPECT_EQ(::waitpid(pid_, &status, 0), pid_);
    return status;
  }

 private:
  [[noreturn]] static void be_node(int line) noexcept {
    ::setenv(launch::job_fd_variable, std::to_string(line).c_str(), 1);
    options o;
    o.workers = 1;
    const runtime rt(o);
    test::refuse_threads();
    const std::string word = launch::pack_missed({0, "this node is ready"});
    (void)!::send(line, word.data(), word.size(), MSG_NOSIGNAL);
    for (;;) ::pause();
  }

  pid_t pid_ = -1;
  os::descriptor line_;
  launch::frame_reader said_;
};

TEST(admitting, is_not_what_a_node_without_threads_says_it_does) {
  if (test::address_sanitizer || test::thread_sanitizer)
    GTEST_SKIP() << "the sanitizer needs the addresses";
  line_to_node node;
  node.say(launch::pack_admit({1, 1, {"127.0.0.1", 9}}));
  const int status = node.end();
  ASSERT_TRUE(WIFEXITED(status)) << "killed by signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 1);
}

}  // namespace
}  // namespace strata::cluster
