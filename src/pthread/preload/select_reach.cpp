// SPDX-License-Identifier: Apache-2.0
#include "pthread/preload/select_reach.hpp"

#include <dirent.h>
#include <sys/select.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "os/own_numbers.hpp"
#include "threads/errno_here.hpp"

namespace strata::preload {
namespace {

// Of those that the program has opened.
int highest_number() noexcept {
  DIR* const all = opendir("/proc/self/fd");
  if (all == nullptr) return -1;
  int highest = -1;
  while (const dirent* const one = readdir(all)) {
    int fd = -1;
    const char* const end = one->d_name + std::strlen(one->d_name);
    if (std::from_chars(one->d_name, end, fd).ptr != end || fd <= highest) continue;
    if (fd == dirfd(all) || os::is_own_number(fd)) continue;
    highest = fd;
  }
  closedir(all);
  return highest;
}

}  // namespace

int select_reach(int count) noexcept {
  if (count <= FD_SETSIZE) return count;
  const int error = detail::errno_here();
  const int words = highest_number() / NFDBITS + 1;
  detail::set_errno_here(error);
  return std::min(count, std::max(words * NFDBITS, FD_SETSIZE));
}

}  // namespace strata::preload
