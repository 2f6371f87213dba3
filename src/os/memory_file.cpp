// SPDX-License-Identifier: Apache-2.0
#include "os/memory_file.hpp"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>

#include "base/errno_error.hpp"

namespace strata::os {

void resize_memory_file(int fd, std::size_t bytes, const std::string& what,
                        const std::string& remedy) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
      bytes > limit.rlim_cur)
    throw user_error(what + ": it takes " + std::to_string(bytes) +
                     " bytes, and no file may have " + "more than " +
                     std::to_string(limit.rlim_cur) + " here; raise ulimit -f");
  if (::ftruncate(fd, static_cast<off_t>(bytes)) != 0) throw errno_error(what, errno, remedy);
}

void* map_memory_file(int fd, std::size_t bytes, const std::string& what,
                      const std::string& remedy) {
  void* const mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (mapped != MAP_FAILED) return mapped;
  const int why = errno;
  rlimit limit{};
  if (why == ENOMEM && ::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    throw user_error(what + ": it takes " + std::to_string(bytes) +
                     " bytes of addresses, and no process may have more than " +
                     std::to_string(limit.rlim_cur) + " here; raise ulimit -v");
  throw errno_error(what, why, remedy);
}

}  // namespace strata::os
