// SPDX-License-Identifier: Apache-2.0
// An output appears whole or not at all.
#include "apps/common/output_file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <strata/error.hpp>
#include <string>
#include <thread>
#include <utility>
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

TEST_F(output_file_test, what_replaces_a_file_has_its_permissions) {
  const auto replace = [&] {
    std::ofstream(folder / "a") << "old";
    for (const fs::perms mode : {fs::perms(0600), fs::perms(0666)}) {
      fs::permissions(folder / "a", mode);
      apps::output_file file(folder / "a");
      file.commit();
      EXPECT_EQ(fs::status(folder / "a").permissions(), mode);
    }
  };
  replace();
  where_all_files_have_names(replace);
}

TEST_F(output_file_test, what_replaces_a_file_has_its_owner_and_group) {
  std::ofstream(folder / "a") << "old";
  if (::chown((folder / "a").c_str(), 12345, 54321) != 0)
    GTEST_SKIP() << "only root can give files away";
  fs::permissions(folder / "a", fs::perms(0640));
  const auto replaced = [&] {
    apps::output_file file(folder / "a");
    file.commit();
    struct stat is {};
    EXPECT_EQ(::stat((folder / "a").c_str(), &is), 0);
    return is;
  };
  const struct stat kept = replaced();
  EXPECT_EQ(kept.st_uid, 12345U);
  EXPECT_EQ(kept.st_gid, 54321U);
  EXPECT_EQ(kept.st_mode & 0777, 0640U);
  // Where it cannot have them, the group of the process may not read what another one may.
  bool denied = false;
  std::thread([&] {
    denied = strata::test::deny_calls({SYS_fchown});
    if (!denied) return;
    EXPECT_EQ(replaced().st_mode & 0777, 0600U);
  }).join();
  if (!denied) GTEST_SKIP() << "no filters of system calls here";
}

TEST_F(output_file_test, a_link_stays_one_and_leads_to_the_new_file) {
  fs::create_directory(folder / "b");
  std::ofstream(folder / "b/file") << "old";
  fs::create_symlink("file", folder / "b/near");
  fs::create_symlink("b/near", folder / "far");
  fs::create_symlink("b/new", folder / "dangling");
  for (const auto& [link, target] : {std::pair{"far", "b/file"}, {"dangling", "b/new"}}) {
    apps::output_file file(folder / link);
    file.write("new");
    file.commit();
    EXPECT_TRUE(fs::is_symlink(folder / link)) << link;
    EXPECT_EQ(contents(folder / target), "new");
  }
  EXPECT_TRUE(fs::is_symlink(folder / "b/near"));
  fs::create_symlink("circle", folder / "circle");
  EXPECT_THROW(apps::output_file(folder / "circle"), strata::user_error);
}

// An open file, which goes with the test.
struct descriptor {
  explicit descriptor(const fs::path& path, int flags = O_WRONLY | O_CREAT)
      : fd(::open(path.c_str(), flags, 0600)) {}
  ~descriptor() { ::close(fd); }
  descriptor(const descriptor&) = delete;
  descriptor& operator=(const descriptor&) = delete;
  const int fd;
};

// As `--svg /dev/stdout > file` has it: a file in the place of that link would be the end of it.
TEST_F(output_file_test, what_is_open_here_is_written_where_its_descriptor_stands) {
  const descriptor log(folder / "log");
  const std::string name = "/proc/self/fd/" + std::to_string(log.fd);
  fs::create_symlink(name, folder / "link");
  ASSERT_EQ(::write(log.fd, "before\n", 7), 7);
  apps::output_file file(folder / "link");
  file.write("text\n");
  file.commit();
  ASSERT_EQ(::write(log.fd, "after\n", 6), 6);
  EXPECT_EQ(fs::read_symlink(folder / "link"), name);
  EXPECT_EQ(contents(folder / "log"), "before\ntext\nafter\n");
  const descriptor read_only(folder / "log", O_RDONLY);
  EXPECT_THROW(apps::output_file("/proc/self/fd/" + std::to_string(read_only.fd)),
               strata::user_error);
}

TEST_F(output_file_test, where_standard_output_ends_nothing_of_it_is_lost) {
  const descriptor log(folder / "log");
  std::fflush(stdout);
  const int ours = ::dup(STDOUT_FILENO);
  ASSERT_GE(ours, 0);
  ::dup2(log.fd, STDOUT_FILENO);
  bool written = ::write(STDOUT_FILENO, "before\n", 7) == 7;
  apps::output_file file(folder / "log");
  file.write("text\n");
  file.commit();
  written = written && ::write(STDOUT_FILENO, "after\n", 6) == 6;
  ::dup2(ours, STDOUT_FILENO);
  ::close(ours);
  EXPECT_TRUE(written);
  EXPECT_EQ(contents(folder / "log"), "before\ntext\nafter\n");
}

TEST_F(output_file_test, whatever_name_the_file_system_takes_will_do) {
  const auto write = [&] {
    std::string umlauts;
    for (int i = 0; i < 127; ++i) umlauts += "\xC3\xBC";
    for (const std::string& name : {std::string(255, 'x'), umlauts}) {
      apps::output_file file(folder / name);
      file.write("text");
      file.commit();
      EXPECT_EQ(contents(folder / name), "text");
    }
    EXPECT_EQ(files(), 2);
  };
  write();
  where_all_files_have_names(write);
  EXPECT_THROW(apps::output_file(folder / std::string(256, 'x')), strata::user_error);
  // There is no room for the name that it has before.
  std::string path = folder;
  while (path.size() < 4080) path += "/.";
  EXPECT_THROW(apps::output_file(path + "/" + std::string(10, 'x')), strata::user_error);
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
