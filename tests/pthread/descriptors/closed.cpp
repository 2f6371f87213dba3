// SPDX-License-Identifier: Apache-2.0
// Programs that close what they did not open, and put files where they have none, while threads
// wait: those go on waiting, and later ones wait as ever.
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <thread>

#include "parts.hpp"
#include "support.hpp"

namespace descriptors {

// In a child, which has no other descriptors: of what `f` is given, nothing is the program's from
// there on.
template <class F>
static void beside_who_waits(F f) {
  const auto in_child = [&] {
    a_pipe p;
    const int above = std::max(p.in, p.out) + 1;
    std::thread waits([&] { SAME(get(p.in), 'a'); });
    let_others_wait();
    f(above);
    std::thread waits_later([&] { SAME(get(p.in), 'a'); });
    let_others_wait();
    put(p.out, 'a');
    put(p.out, 'a');
    waits.join();
    waits_later.join();
    a_pipe fresh;
    beside([&] { SAME(get(fresh.in), 'b'); },
           [&] {
             let_others_wait();
             put(fresh.out, 'b');
           });
  };
  SAME(status_of_child(in_child), 0);
}

// Where the library that runs us may have descriptors, if it runs us.
static int lowest_of_others() {
  rlimit limit{};
  SAME(getrlimit(RLIMIT_NOFILE, &limit), 0);
  return static_cast<int>(std::min<rlim_t>(4096, limit.rlim_cur / 4 * 3));
}
static constexpr int others_max = 16;

static void not_there(int answer) {
  SAME(answer, -1);
  SAME(errno, EBADF);
}

void closed_without_knowing() {
  beside_who_waits([](int above) { closefrom(above); });
  beside_who_waits([](int above) {
    if (close_range(static_cast<unsigned>(above), ~0U, 0) != 0) SAME(errno, ENOSYS);
  });
  beside_who_waits([](int above) {
    if (syscall(SYS_close_range, above, ~0U, 0) != 0) SAME(errno, ENOSYS);
  });
  beside_who_waits([](int above) {
    for (int fd = above; fd < lowest_of_others(); ++fd) close(fd);
    for (int fd = lowest_of_others(); fd < lowest_of_others() + others_max; ++fd)
      not_there(close(fd));
    for (int fd = lowest_of_others(); fd < lowest_of_others() + others_max; ++fd)
      not_there(static_cast<int>(syscall(SYS_close, fd)));
  });
}

// What the program puts there is its own, and closed as such.
void replaced_without_knowing() {
  const auto is_empty = [](int fd) {
    char c = 0;
    SAME(read(fd, &c, 1), 0);
    SAME(close(fd), 0);
  };
  beside_who_waits([&](int) {
    const int nothing = open("/dev/null", O_RDWR);
    for (int fd = lowest_of_others(); fd < lowest_of_others() + others_max; ++fd)
      SAME(dup2(nothing, fd), fd);
    let_others_wait();
    for (int fd = lowest_of_others(); fd < lowest_of_others() + others_max; ++fd) is_empty(fd);
    for (int fd = lowest_of_others(); fd < lowest_of_others() + others_max; ++fd)
      SAME(dup3(nothing, fd, O_CLOEXEC), fd);
    let_others_wait();
    for (int fd = lowest_of_others(); fd < lowest_of_others() + others_max; ++fd) is_empty(fd);
    for (int fd = lowest_of_others(); fd < lowest_of_others() + others_max; ++fd) {
      not_there(dup2(-1, fd));
      not_there(close(fd));
    }
    close(nothing);
  });
}

}  // namespace descriptors
