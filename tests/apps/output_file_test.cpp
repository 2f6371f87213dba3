// SPDX-License-Identifier: Apache-2.0
// An output appears whole or not at all.
#include "apps/common/output_file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <strata/error.hpp>
#include <string>
#include <thread>
#include <vector>

#include "tests/common/denied_calls.hpp"

namespace {

namespace fs = std::filesystem;

class output_file_test : public testing::Test {
 protected:
  output_file_test() {
    std::string pattern = (fs::temp_directory_path() / "strata-output-XXXXXX").string();
    folder = ::mkdtemp(pattern.data());
  }
  ~output_file_test() override { fs::remove_all(folder); }

  static std::string contents(const fs::path& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  long files() const { return std::distance(fs::directory_iterator(folder), {}); }

  // As where the file system has no files without a name, or /proc is not there to name them later.
  static void where_all_files_have_names(const std::function<void()>& test) {
    bool denied = false;
    std::thread([&] {
#ifdef SYS_access
      denied = strata::test::deny_calls({SYS_access, SYS_faccessat});
#else
      denied = strata::test::deny_calls({SYS_faccessat});
#endif
      if (denied) test();
    }).join();
    if (!denied) GTEST_SKIP() << "no filters of system calls here";
  }

  fs::path folder;
};

TEST_F(output_file_test, commit_gives_the_whole_file_its_name) {
  const std::string big(300'000, 'x');
  apps::output_file file(folder / "a");
  file.write("first\n");
  file.write(big);
  EXPECT_FALSE(fs::exists(folder / "a"));
  file.commit();
  EXPECT_EQ(contents(folder / "a"), "first\n" + big);
  EXPECT_EQ(files(), 1);
}

// A signal that ends the program leaves nothing behind.
TEST_F(output_file_test, nothing_can_be_seen_before_commit) {
  const int fd = ::open(folder.c_str(), O_TMPFILE | O_WRONLY, 0600);
  if (fd < 0) GTEST_SKIP() << "the file system has no files without a name";
  ::close(fd);
  std::ofstream(folder / "a") << "old";
  apps::output_file file(folder / "a");
  file.write(std::string(300'000, 'x'));
  EXPECT_EQ(files(), 1);
  EXPECT_EQ(contents(folder / "a"), "old");
  file.commit();
  EXPECT_EQ(files(), 1);
  EXPECT_EQ(contents(folder / "a"), std::string(300'000, 'x'));
}

TEST_F(output_file_test, what_the_umask_allows_is_allowed) {
  const mode_t before = ::umask(027);
  apps::output_file file(folder / "a");
  file.commit();
  ::umask(before);
  EXPECT_EQ(fs::status(folder / "a").permissions(), fs::perms(0640));
}

TEST_F(output_file_test, a_name_for_the_time_before_is_known_as_one) {
  where_all_files_have_names([&] {
    std::ofstream(folder / "a") << "old";
    {
      apps::output_file file(folder / "a");
      EXPECT_EQ(files(), 2);
      for (const fs::directory_entry& e : fs::directory_iterator(folder))
        EXPECT_EQ(apps::name_to_be(e.path().filename().string()), "a") << e.path();
      EXPECT_EQ(contents(folder / "a"), "old");
    }
    EXPECT_EQ(files(), 1);
    apps::output_file file(folder / "a");
    file.write("new");
    file.commit();
    EXPECT_EQ(contents(folder / "a"), "new");
    EXPECT_EQ(files(), 1);
  });
  EXPECT_EQ(apps::name_to_be("map.json.4711-12"), "map.json");
  for (const char* const other :
       {"", "a", "7_8.jpg", "7_8.jpg.bak", "7_8.jpg.backup", "7_8.jpg.1", "7_8.jpg.1-",
        "7_8.jpg.-1", "7_8.jpg.1-2-3", "7_8.jpg.1-2 ", "7_8.jpg.1-2~", "12-3"})
    EXPECT_EQ(apps::name_to_be(other), other);
}

TEST_F(output_file_test, many_at_once_have_what_the_umask_allows_and_leave_it_as_it_is) {
  constexpr int threads = 4, files_each = 500;
  const mode_t before = ::umask(027);
  where_all_files_have_names([&] {
    std::vector<std::thread> all;
    for (int i = 0; i < threads; ++i) {
      all.emplace_back([&] {
        for (int k = 0; k < files_each; ++k) const apps::output_file file(folder / "a");
      });
    }
    for (std::thread& t : all) t.join();
    EXPECT_EQ(files(), 0);
    apps::output_file file(folder / "a");
    file.commit();
    EXPECT_EQ(fs::status(folder / "a").permissions(), fs::perms(0640));
  });
  EXPECT_EQ(::umask(before), mode_t{027});
}

TEST_F(output_file_test, without_commit_the_older_file_stays) {
  std::ofstream(folder / "a") << "old";
  {
    apps::output_file file(folder / "a");
    file.write("new");
  }
  EXPECT_EQ(contents(folder / "a"), "old");
  EXPECT_EQ(files(), 1);
}

TEST_F(output_file_test, says_what_cannot_be_written_before_any_work) {
  EXPECT_THROW(apps::output_file((folder / "none" / "a").string()), strata::user_error);
  EXPECT_THROW(apps::output_file(folder.string()), strata::user_error);
  EXPECT_EQ(files(), 0);
}

TEST_F(output_file_test, a_full_device_is_an_error) {
  apps::output_file file("/dev/full");
  file.write("text");
  EXPECT_THROW(file.commit(), strata::user_error);
}

TEST_F(output_file_test, a_device_is_written_in_place) {
  apps::output_file file("/dev/null");
  file.write("text");
  file.commit();
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

}  // namespace
