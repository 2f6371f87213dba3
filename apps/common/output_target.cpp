// SPDX-License-Identifier: Apache-2.0
#include "apps/common/output_target.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <filesystem>
#include <system_error>

namespace apps {
namespace {

namespace fs = std::filesystem;

constexpr int links_max = 40;  // as the kernel has it

// What a link in /proc/self/fd stands for; -1: it is none of those. What the link says is only what
// the file was called when it was opened.
int descriptor_of(const fs::path& link) {
  std::error_code problem;
  const fs::path open_here = fs::canonical("/proc/self/fd", problem);
  if (problem) return -1;
  const fs::path folder = link.has_parent_path() ? link.parent_path() : fs::path(".");
  if (fs::canonical(folder, problem) != open_here || problem) return -1;
  const std::string name = link.filename();
  int descriptor = -1;
  std::from_chars(name.data(), name.data() + name.size(), descriptor);
  return descriptor;
}

// Standard output or standard error, where that is the same file; -1: it is not.
int standard_stream_in(const std::string& path) {
  struct stat file {};
  if (::stat(path.c_str(), &file) != 0 || !S_ISREG(file.st_mode)) return -1;
  for (const int stream : {STDOUT_FILENO, STDERR_FILENO}) {
    struct stat open {};
    if (::fstat(stream, &open) == 0 && open.st_dev == file.st_dev && open.st_ino == file.st_ino)
      return stream;
  }
  return -1;
}

}  // namespace

output_target target_of(const std::string& path) {
  if (const int stream = standard_stream_in(path); stream >= 0) return {stream, {}};
  fs::path at = path;
  for (int links = 0; links < links_max; ++links) {
    std::error_code is_none;
    const fs::path next = fs::read_symlink(at, is_none);
    if (is_none) break;
    if (const int descriptor = descriptor_of(at); descriptor >= 0) return {descriptor, {}};
    at = at.parent_path() / next;
  }
  return {-1, at.string()};
}

}  // namespace apps
