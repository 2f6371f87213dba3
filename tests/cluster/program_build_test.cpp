// SPDX-License-Identifier: Apache-2.0
// What counts as the same program: also the libraries whose code travels.
#include "cluster/engine/program_build.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>

namespace strata::cluster {
namespace {

// Of this program with that library.
std::string build_with(const char* library) {
  std::array<int, 2> ends{};
  EXPECT_EQ(::pipe(ends.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::dlopen(library, RTLD_NOW) == nullptr) std::_Exit(3);
    const std::string build = program_build();
    std::_Exit(::write(ends[1], build.data(), build.size()) > 0 ? 0 : 4);
  }
  ::close(ends[1]);
  std::string build;
  std::array<char, 256> block;
  for (ssize_t n = 0; (n = ::read(ends[0], block.data(), block.size())) > 0;)
    build.append(block.data(), static_cast<std::size_t>(n));
  ::close(ends[0]);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  return build;
}

TEST(program_build, is_that_of_libraries_with_code_that_travels_too) {
  const std::string alone = program_build();
  EXPECT_EQ(build_with(STRATA_LIBRARY_0), alone) << "it has none";
  const std::string first = build_with(STRATA_LIBRARY_1), second = build_with(STRATA_LIBRARY_2);
  EXPECT_NE(first, alone);
  EXPECT_NE(second, alone);
  EXPECT_NE(first, second);
  EXPECT_EQ(build_with(STRATA_LIBRARY_1), first);
  EXPECT_LE(first.size(), 64U) << "as much as a connection compares";
}

}  // namespace
}  // namespace strata::cluster
