// SPDX-License-Identifier: Apache-2.0
#include "tools/strata/processes/program_path.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace {

namespace fs = std::filesystem;
using strata::launcher::find_program;

TEST(find_program, follows_a_link_before_it_goes_up) {
  std::string pattern = testing::TempDir() + "strata-path-XXXXXX";
  const fs::path folder = ::mkdtemp(pattern.data());
  fs::create_directories(folder / "here");
  fs::create_directories(folder / "there/below");
  fs::create_directory_symlink(folder / "there/below", folder / "here/link");
  for (const char* const name : {"here/program", "there/program"}) {
    std::ofstream(folder / name) << "#!/bin/sh\n";
    fs::permissions(folder / name, fs::perms::owner_all);
  }
  EXPECT_TRUE(
      fs::equivalent(find_program(folder / "here/link/../program"), folder / "there/program"));
  fs::remove_all(folder);
}

TEST(find_program, takes_an_empty_end_of_the_path_for_the_folder_here) {
  std::string pattern = testing::TempDir() + "strata-path-XXXXXX";
  const fs::path folder = ::mkdtemp(pattern.data());
  std::ofstream(folder / "program") << "#!/bin/sh\n";
  fs::permissions(folder / "program", fs::perms::owner_all);
  const fs::path before = fs::current_path();
  const std::string path_before = std::getenv("PATH");
  fs::current_path(folder);
  for (const char* const path : {"/usr/bin:", ":/usr/bin", ""}) {
    ::setenv("PATH", path, 1);
    EXPECT_TRUE(fs::equivalent(find_program("program"), folder / "program")) << path;
  }
  ::setenv("PATH", path_before.c_str(), 1);
  fs::current_path(before);
  fs::remove_all(folder);
}

}  // namespace
