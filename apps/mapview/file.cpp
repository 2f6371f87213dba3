// SPDX-License-Identifier: Apache-2.0
#include "apps/mapview/file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <new>
#include <strata/error.hpp>

namespace mapview {
namespace {

[[noreturn]] void refuse_file(const std::string& path, const std::string& why) {
  throw strata::user_error(path + ": " + why);
}
[[noreturn]] void refuse_by_errno(const std::string& path) {
  refuse_file(path, std::strerror(errno));
}

void require_at_most(std::size_t bytes_max, std::size_t bytes, const std::string& path) {
  if (bytes > bytes_max) refuse_file(path, "has more than " + std::to_string(bytes_max) + " bytes");
}

std::vector<unsigned char> all_of(std::FILE& in, const std::string& path, std::size_t bytes_usual,
                                  std::size_t bytes_max) {
  // One byte more than there are finds the end at once.
  const std::size_t more = bytes_usual + 1;
  std::vector<unsigned char> bytes;
  std::size_t size = 0;
  do {
    bytes.resize(size + more);
    size += std::fread(bytes.data() + size, 1, more, &in);
    require_at_most(bytes_max, size, path);
  } while (size == bytes.size());
  if (std::ferror(&in) != 0) refuse_by_errno(path);
  bytes.resize(size);
  return bytes;
}

}  // namespace

std::vector<unsigned char> read_file(const std::string& path) {
  const open_file in(std::fopen(path.c_str(), "rbe"), &std::fclose);
  if (in == nullptr) refuse_by_errno(path);
  // Of what is no plain file nothing is known.
  struct stat about {};
  std::size_t usual = std::size_t{64} << 10;
  if (::fstat(::fileno(in.get()), &about) == 0 && about.st_size > 0)
    usual = static_cast<std::size_t>(about.st_size);
  return all_of(*in, path, usual, SIZE_MAX);
}

std::vector<unsigned char> read_plain_file(const std::string& path, std::size_t bytes_max) {
  // Without O_NONBLOCK whoever opens a pipe waits until somebody writes to it.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) refuse_by_errno(path);
  const open_file in(::fdopen(fd, "rb"), &std::fclose);
  if (in == nullptr) {
    ::close(fd);
    throw std::bad_alloc();
  }
  struct stat about {};
  if (::fstat(fd, &about) != 0) refuse_by_errno(path);
  if (!S_ISREG(about.st_mode)) refuse_file(path, "is no plain file");
  const auto size = static_cast<std::size_t>(about.st_size);
  require_at_most(bytes_max, size, path);
  return all_of(*in, path, size, bytes_max);
}

}  // namespace mapview
