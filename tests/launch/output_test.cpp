// SPDX-License-Identifier: Apache-2.0
#include "tools/strata/events/output.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "tools/strata/events/frame_channel.hpp"

namespace {

using strata::launcher::event_loop;
using strata::launcher::line_prefixer;
using strata::launcher::no_deadline;
using strata::launcher::output_queue;
using strata::os::descriptor;

TEST(line_prefixer, whole_lines_only) {
  line_prefixer p("[1] ");
  EXPECT_EQ(p.add("ab"), "");
  EXPECT_EQ(p.add("c\nde"), "[1] abc\n");
  EXPECT_EQ(p.add("\n\nf\n"), "[1] de\n[1] \n[1] f\n");
  EXPECT_EQ(p.finish(), "");
  EXPECT_EQ(p.add("end"), "");
  EXPECT_EQ(p.finish(), "[1] end\n");
  EXPECT_EQ(p.finish(), "");
}

TEST(line_prefixer, an_endless_line_is_cut) {
  line_prefixer p("[1] ");
  const std::string half(strata::launcher::line_bytes_max / 2, 'x');
  EXPECT_EQ(p.add(half), "");
  EXPECT_EQ(p.add(half), "[1] " + half + half + "\n");
  EXPECT_EQ(p.add("y\n"), "[1] y\n");
}

// More than any terminal or pipe holds.
const std::string& much() {
  static const std::string text = [] {
    std::string lines;
    while (lines.size() < 150'000) lines += "line " + std::to_string(lines.size()) + "\n";
    return lines;
  }();
  return text;
}

struct terminal {
  terminal() : user(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)) {
    EXPECT_EQ(::grantpt(user.get()), 0);
    EXPECT_EQ(::unlockpt(user.get()), 0);
    name = ::ptsname(user.get());
    program = descriptor(::open(name.c_str(), O_RDWR | O_NOCTTY | O_CLOEXEC));
    EXPECT_TRUE(program);
  }
  descriptor user, program;
  std::string name;
};

// Reads so many bytes while the loop's queue writes them.
std::string read_all(event_loop& loop, int fd, std::size_t bytes) {
  std::string text;
  loop.watch_reads(fd, [&] {
    std::array<char, 4096> block;
    const ssize_t got = ::read(fd, block.data(), block.size());
    if (got > 0) text.append(block.data(), static_cast<std::size_t>(got));
  });
  while (text.size() < bytes) loop.run_once(no_deadline);
  loop.forget(fd);
  return text;
}

void expect_not_to_wait_for(const terminal& t) {
  event_loop loop;
  output_queue queue(loop, t.program.get());
  queue.add(much());
  EXPECT_GT(queue.bytes_waiting(), 0U);
  EXPECT_EQ(::fcntl(t.program.get(), F_GETFL) & O_NONBLOCK, 0);
  std::string shown = much();
  for (std::size_t i = 0; (i = shown.find('\n', i)) != std::string::npos; i += 2)
    shown.insert(i, 1, '\r');
  EXPECT_TRUE(read_all(loop, t.user.get(), shown.size()) == shown);
  EXPECT_EQ(queue.bytes_waiting(), 0U);
  EXPECT_EQ(queue.broken(), 0);
}

TEST(output_queue, does_not_wait_for_a_terminal_that_nobody_reads) {
  expect_not_to_wait_for(terminal());
}

// That of another user, say.
TEST(output_queue, does_not_wait_for_a_terminal_that_it_cannot_open_either) {
  const terminal t;
  ASSERT_EQ(::chmod(t.name.c_str(), 0), 0);
  // Nor as root: a thread's rights are its own.
  std::thread([&] {
    __user_cap_header_struct head{};
    head.version = _LINUX_CAPABILITY_VERSION_3;
    const std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> none{};
    ASSERT_EQ(::syscall(SYS_capset, &head, none.data()), 0);
    ASSERT_FALSE(descriptor(::open(t.name.c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC)));
    expect_not_to_wait_for(t);
  }).join();
}

// Which would be the first end of another one.
TEST(output_queue, writes_into_the_other_end_of_a_terminal_itself) {
  const terminal t;
  event_loop loop;
  output_queue queue(loop, t.user.get());
  queue.add("keys\n");
  EXPECT_EQ(queue.bytes_waiting(), 0U);
  EXPECT_EQ(read_all(loop, t.program.get(), 5), "keys\n");
}

// Which fill it between the question whether there is room and the answer's use.
TEST(output_queue, does_not_wait_for_a_pipe_that_others_write_into) {
  for (int round = 0; round < 1000; ++round) {
    auto [reading, writing] = strata::launcher::make_pipe();
    std::vector<std::thread> writers;
    for (int i = 0; i < 3; ++i) {
      writers.emplace_back([fd = writing.get()] {
        event_loop loop;
        output_queue queue(loop, fd);
        queue.add(much());
        EXPECT_GT(queue.bytes_waiting(), 0U);
      });
    }
    for (std::thread& one : writers) one.join();
    EXPECT_EQ(::fcntl(writing.get(), F_GETFL) & O_NONBLOCK, 0);
  }
}

// As the launcher does, for as long as this lives.
struct sigpipe_ignored {
  sigpipe_ignored() : before(::signal(SIGPIPE, SIG_IGN)) {}
  ~sigpipe_ignored() { ::signal(SIGPIPE, before); }
  sigpipe_ignored(const sigpipe_ignored&) = delete;
  sigpipe_ignored& operator=(const sigpipe_ignored&) = delete;
  void (*before)(int);
};

TEST(output_queue, knows_that_a_pipe_has_lost_its_reader) {
  const sigpipe_ignored meanwhile;
  auto [reading, writing] = strata::launcher::make_pipe();
  event_loop loop;
  output_queue queue(loop, writing.get());
  reading.reset();
  queue.add("words");
  EXPECT_EQ(queue.broken(), EPIPE);
}

// Such a pipe cannot be opened once more.
TEST(output_queue, knows_that_a_pipe_had_lost_its_reader_before) {
  const sigpipe_ignored meanwhile;
  auto [reading, writing] = strata::launcher::make_pipe();
  reading.reset();
  event_loop loop;
  output_queue queue(loop, writing.get());
  queue.add("words");
  EXPECT_EQ(queue.broken(), EPIPE);
}

}  // namespace
