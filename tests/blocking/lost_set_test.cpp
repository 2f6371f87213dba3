// SPDX-License-Identifier: Apache-2.0
// A program that closes what it did not open closes what waits for its descriptors as well, or puts
// a file in its place. Whoever waits then, or later, is told as ever.
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <iterator>
#include <thread>
#include <vector>

#include "../sched/support.hpp"
#include "io_support.hpp"
#include "os/own_numbers.hpp"
#include "strata/blocking.hpp"
#include "strata/thread.hpp"

namespace strata::test {
namespace {

// At once, and by system calls: under what the runtime may know of. Or as if it had never known.
void lose_all_own(bool are_replaced, bool are_forgotten = false) {
  const int nothing = are_replaced ? open("/dev/null", O_RDWR | O_CLOEXEC) : -1;
  std::vector<int> all;
  for (int fd = os::next_own_number(0); fd >= 0;
       fd = os::next_own_number(static_cast<unsigned>(fd) + 1))
    all.push_back(fd);
  EXPECT_FALSE(all.empty());
  for (const int fd : all) {
    if (are_forgotten) os::forget_own_number(fd);
    if (are_replaced)
      EXPECT_EQ(syscall(SYS_dup3, nothing, fd, O_CLOEXEC), fd);
    else
      EXPECT_EQ(syscall(SYS_close, fd), 0);
  }
  if (are_replaced) close(nothing);
}

void expect_byte(int fd) {
  char c = 0;
  EXPECT_EQ(io::read(fd, &c, 1), 1);
  EXPECT_EQ(c, 'x');
}

TEST_P(io_on, waits_outlive_the_set_that_watches_for_them) {
  runtime rt(settings());
  rt.run([] {
    for (const bool are_replaced : {false, true}) {
      pair before(false);
      pair beside(false);
      thread waits([&] { expect_byte(before.end[0]); });
      while (os::next_own_number(0) < 0) this_thread::yield();
      lose_all_own(are_replaced);
      thread waits_later([&] { expect_byte(beside.end[0]); });
      for (int i = 0; i < 100; ++i) this_thread::yield();
      EXPECT_EQ(io::write(before.end[1], "x", 1), 1);
      waits.join();
      EXPECT_EQ(io::write(beside.end[1], "x", 1), 1);
      waits_later.join();
      pair after(false);
      thread waits_last([&] { expect_byte(after.end[0]); });
      for (int i = 0; i < 100; ++i) this_thread::yield();
      EXPECT_EQ(io::write(after.end[1], "x", 1), 1);
      waits_last.join();
    }
  });
}

// One for each end of what passes through it: the second one by a copy, which is lost as well.
TEST_P(io_on, waits_for_one_file_outlive_their_set) {
  runtime rt(settings());
  rt.run([] {
    for (const bool are_replaced : {false, true}) {
      pair p(true);
      std::size_t filled = 0;
      for (ssize_t n = 0; (n = send(p.end[0], "yyyy", 4, MSG_DONTWAIT)) > 0;)
        filled += static_cast<std::size_t>(n);
      std::atomic<int> waiting{0};
      thread reads([&] {
        ++waiting;
        expect_byte(p.end[0]);
      });
      thread writes([&] {
        ++waiting;
        EXPECT_EQ(io::write(p.end[0], "y", 1), 1);
      });
      while (waiting < 2 || os::next_own_number(0) < 0) this_thread::yield();
      for (int i = 0; i < 100; ++i) this_thread::yield();
      lose_all_own(are_replaced);
      pair beside(false);
      thread waits_later([&] { expect_byte(beside.end[0]); });
      for (int i = 0; i < 100; ++i) this_thread::yield();
      EXPECT_EQ(io::write(p.end[1], "x", 1), 1);
      reads.join();
      std::array<char, 4096> some{};
      for (std::size_t n = 0; n < filled + 1;) {
        const ssize_t here = io::read(p.end[1], some.data(), some.size());
        ASSERT_GT(here, 0);
        n += static_cast<std::size_t>(here);
      }
      writes.join();
      EXPECT_EQ(io::write(beside.end[1], "x", 1), 1);
      waits_later.join();
    }
  });
}

std::ptrdiff_t kernel_threads() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
}

// But the first, who sleeps in each lost set ends.
TEST_P(io_on, who_sleeps_in_a_lost_set_ends) {
  runtime rt(settings());
  rt.run([] {
    pair idle(false);
    thread waits([&] { expect_byte(idle.end[0]); });
    while (os::next_own_number(0) < 0) this_thread::yield();
    const std::ptrdiff_t before = kernel_threads();
    for (int i = 0; i < 8; ++i) {
      lose_all_own(false, true);
      pair p(false);
      thread waits_later([&] { expect_byte(p.end[0]); });
      while (os::next_own_number(0) < 0) this_thread::yield();
      EXPECT_EQ(io::write(p.end[1], "x", 1), 1);
      waits_later.join();
    }
    // Two: the first, and the one that there is.
    while (kernel_threads() > before + 2) this_thread::yield();
    EXPECT_EQ(io::write(idle.end[1], "x", 1), 1);
    waits.join();
  });
}

// Also while the next one is being made.
TEST_P(io_on, waits_outlive_sets_that_are_lost_again_and_again) {
  runtime rt(settings());
  rt.run([] {
    pair idle(false);
    thread waits([&] { expect_byte(idle.end[0]); });
    std::atomic<bool> is_over{false};
    std::thread loses([&] {
      for (unsigned i = 0; i < 300 && !is_over; ++i) {
        int fd = -1;
        while ((fd = os::next_own_number(0)) < 0 && !is_over) std::this_thread::yield();
        if (fd < 0) return;
        os::forget_own_number(fd);
        syscall(SYS_close, fd);
        for (unsigned n = i % 7; n != 0; --n) std::this_thread::yield();
      }
    });
    for (int i = 0; i < 40; ++i) {
      pair p(false);
      thread waits_later([&] { expect_byte(p.end[0]); });
      for (int n = i % 5; n != 0; --n) this_thread::yield();
      EXPECT_EQ(io::write(p.end[1], "x", 1), 1);
      waits_later.join();
    }
    is_over = true;
    loses.join();
    EXPECT_EQ(io::write(idle.end[1], "x", 1), 1);
    waits.join();
  });
}

}  // namespace
}  // namespace strata::test
