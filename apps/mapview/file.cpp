// SPDX-License-Identifier: Apache-2.0
#include "apps/mapview/file.hpp"

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
  std::vector<unsigned char> bytes;
  std::size_t size = 0;
  do {
    bytes.resize(size + (std::size_t{64} << 10));
    const std::size_t n = std::fread(bytes.data() + size, 1, bytes.size() - size, in.get());
    size += n;
  } while (size == bytes.size());
  if (std::ferror(in.get()) != 0) fail();
  bytes.resize(size);
  return bytes;
}

}  // namespace mapview
