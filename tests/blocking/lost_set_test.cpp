// SPDX-License-Identifier: Apache-2.0
// A program that closes what it did not open closes what waits for its descriptors as well, or puts
// a file in its place. Whoever waits then, or later, is told as ever.
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <vector>

#include "../sched/support.hpp"
#include "io_support.hpp"
#include "os/own_numbers.hpp"
#include "strata/blocking.hpp"
#include "strata/thread.hpp"

namespace strata::test {
namespace {

// At once, and by system calls: under what the runtime may know of.
void lose_all_own(bool are_replaced) {
  const int nothing = are_replaced ? open("/dev/null", O_RDWR | O_CLOEXEC) : -1;
  std::vector<int> all;
  for (int fd = os::next_own_number(0); fd >= 0;
       fd = os::next_own_number(static_cast<unsigned>(fd) + 1))
    all.push_back(fd);
  EXPECT_FALSE(all.empty());
  for (const int fd : all) {
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

}  // namespace
}  // namespace strata::test
