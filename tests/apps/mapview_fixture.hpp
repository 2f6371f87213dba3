// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "run_program.hpp"

namespace apps_test {

// Whoever makes a map waits until its disk has all that has been written there, also by others.
// Where there is a folder in memory it will do for those that make many.
inline std::filesystem::path quick_folder() {
  const std::filesystem::path memory = "/dev/shm";
  return ::access(memory.c_str(), W_OK | X_OK) == 0 ? memory
                                                    : std::filesystem::temp_directory_path();
}

// A folder for maps, which goes with the test.
class maps : public testing::Test {
 protected:
  explicit maps(const std::filesystem::path& where = std::filesystem::temp_directory_path()) {
    std::string name = (where / "mapview_XXXXXX").string();
    folder = ::mkdtemp(name.data());
  }
  ~maps() override { std::filesystem::remove_all(folder); }
  [[nodiscard]] std::string path(const std::string& name) const { return folder + "/" + name; }
  // A map of 700 x 500 pixels in tiles of 64 x 48, in three folders. There can be four smaller
  // levels.
  void make_small(int levels = 0) const {
    const outcome o =
        run_line("mapview make " + path("map") +
                 " --size 700x500 --tile 64x48 --folders 3 --levels " + std::to_string(levels));
    ASSERT_EQ(o.exit_code, 0) << o.err;
  }
  std::string folder;
};

}  // namespace apps_test
