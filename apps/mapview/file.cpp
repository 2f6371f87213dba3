// SPDX-License-Identifier: Apache-2.0
#include "apps/mapview/file.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <strata/error.hpp>

namespace mapview {

std::vector<unsigned char> read_file(const std::string& path) {
  const auto fail = [&] { throw strata::user_error(path + ": " + std::strerror(errno)); };
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> in(std::fopen(path.c_str(), "rbe"),
                                                           &std::fclose);
  if (in == nullptr) fail();
  // One byte more than there are finds the end at once. Of what is no plain file nothing is known.
  struct stat about {};
  std::size_t more = std::size_t{64} << 10;
  if (::fstat(::fileno(in.get()), &about) == 0 && about.st_size > 0)
    more = static_cast<std::size_t>(about.st_size) + 1;
  std::vector<unsigned char> bytes;
  std::size_t size = 0;
  do {
    bytes.resize(size + more);
    const std::size_t n = std::fread(bytes.data() + size, 1, bytes.size() - size, in.get());
    size += n;
  } while (size == bytes.size());
  if (std::ferror(in.get()) != 0) fail();
  bytes.resize(size);
  return bytes;
}

}  // namespace mapview
