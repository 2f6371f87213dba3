// SPDX-License-Identifier: Apache-2.0
// `strata pthread` as a user meets it: what it cannot run, how settings are given, and that they
// hold in the program.
#include "command.hpp"

#include <elf.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace launch_test {
namespace {

namespace fs = std::filesystem;

result run_pthread(const words& flags_and_program) {
  words line{"pthread"};
  line.insert(line.end(), flags_and_program.begin(), flags_and_program.end());
  command c(line);
  const int status = c.wait();
  return {status, c.out(), c.err()};
}

// One line, and nothing has run.
void expect_refused(const words& line, const std::string& why) {
  const result r = run_pthread(line);
  EXPECT_EQ(r.status, 2) << r.err;
  EXPECT_EQ(r.out, "");
  EXPECT_EQ(count_lines(r.err), 1U) << r.err;
  EXPECT_TRUE(contains(r.err, why)) << r.err;
}

class pthread_command : public ::testing::Test {
 protected:
  void TearDown() override { fs::remove(file_); }
  static std::string file_of_this_test() {
    return testing::TempDir() + "strata_pthread_" + std::to_string(::getpid()) + "_" +
           testing::UnitTest::GetInstance()->current_test_info()->name();
  }
  // A file that may be run, with that in it.
  const std::string& program(const void* data, std::size_t bytes) {
    file_ = file_of_this_test();
    std::ofstream(file_, std::ios::binary)
        .write(static_cast<const char*>(data), static_cast<std::streamsize>(bytes));
    fs::permissions(file_, fs::perms::owner_all);
    return file_;
  }
  const std::string& program(const std::string& text) { return program(text.data(), text.size()); }
  std::string file_;
};

// As the system's programs begin, without a loader.
Elf64_Ehdr statically_linked() {
  Elf64_Ehdr head{};
  std::memcpy(head.e_ident, ELFMAG, SELFMAG);
  head.e_ident[EI_CLASS] = ELFCLASS64;
#if defined(__x86_64__)
  head.e_machine = EM_X86_64;
#else
  head.e_machine = EM_AARCH64;
#endif
  return head;
}

TEST_F(pthread_command, needs_a_program) {
  expect_refused({}, "which program?");
  expect_refused({"--"}, "which program?");
  expect_refused({"--strata-stats"}, "which program?");
  expect_refused({"/no/such/program"}, "/no/such/program");
}

TEST_F(pthread_command, says_why_a_file_cannot_be_preloaded) {
  expect_refused({program("#!/bin/sh\necho ok\n")}, "is a script");
  expect_refused({program("no program")}, "is not a program of this system");
  Elf64_Ehdr head = statically_linked();
  expect_refused({program(&head, sizeof head)}, "is statically linked");
  head.e_machine = EM_SPARC;
  expect_refused({program(&head, sizeof head)}, "for another processor");
}

TEST_F(pthread_command, refuses_what_the_system_would_not_preload) {
  file_ = file_of_this_test();
  fs::copy_file(node_program(), file_, fs::copy_options::overwrite_existing);
  // The caller's own rights are no others.
  fs::permissions(file_, fs::perms::owner_all | fs::perms::set_uid);
  EXPECT_EQ(run_pthread({"--strata-dump-signal=USR1", file_, "dump"}).out, "ok\n");
  if (::chown(file_.c_str(), 65534, static_cast<gid_t>(-1)) != 0)
    GTEST_SKIP() << "only root can make a program that is another user's";
  fs::permissions(file_, fs::perms::all | fs::perms::set_uid);
  expect_refused({file_, "dump"}, "is setuid");
}

// Such as ping and dumpcap have. Root has all of them in any case.
TEST_F(pthread_command, refuses_a_program_with_capabilities) {
  file_ = file_of_this_test();
  fs::copy_file(node_program(), file_, fs::copy_options::overwrite_existing);
  vfs_cap_data raw_sockets{};
  raw_sockets.magic_etc = VFS_CAP_REVISION_2 | VFS_CAP_FLAGS_EFFECTIVE;
  raw_sockets.data[0].permitted = 1U << CAP_NET_RAW;
  if (::setxattr(file_.c_str(), "security.capability", &raw_sockets, sizeof raw_sockets, 0) != 0)
    GTEST_SKIP() << "no program can be given capabilities here";
  const words as_user{"unshare", "--map-user=12345"};
  if (command({"true"}, {.around = as_user, .other = true}).wait() != 0)
    GTEST_SKIP() << "needs the right to make namespaces";
  command c({"pthread", file_, "dump"}, {.around = as_user});
  EXPECT_EQ(c.wait(), 2) << c.err();
  EXPECT_EQ(c.out(), "");
  EXPECT_EQ(count_lines(c.err()), 1U) << c.err();
  EXPECT_TRUE(contains(c.err(), "has capabilities of its own")) << c.err();
  EXPECT_EQ(run_pthread({"--strata-dump-signal=USR1", file_, "dump"}).out, "ok\n");
}

// The limit of processes is none for root.
TEST_F(pthread_command, says_what_to_do_where_there_may_be_no_thread_for_a_worker) {
  const words as_other{"setpriv", "--reuid=54321", "--clear-groups", "prlimit", "--nproc=1"};
  command probe({"pthread", "--help"}, {.around = as_other});
  if (probe.wait() != 0) GTEST_SKIP() << "nobody else can run it here: " << probe.err();
  command c({"pthread", node_program(), "dump"}, {.around = as_other});
  EXPECT_EQ(c.wait(), 1) << c.err();
  EXPECT_EQ(c.out(), "");
  EXPECT_EQ(count_lines(c.err()), 1U) << c.err();
  EXPECT_TRUE(contains(c.err(), "; raise the limits of processes")) << c.err();
}

TEST_F(pthread_command, refuses_flags_that_it_does_not_know) {
  expect_refused({"--strata-worker=2", node_program(), "dump"},
                 "unknown flag --strata-worker; did you mean --strata-workers?");
  expect_refused({"-x", node_program(), "dump"}, "-x is not known here");
  expect_refused({"--strata-workers"}, "--strata-workers needs a value");
}

TEST_F(pthread_command, refuses_bad_values_by_the_name_of_the_flag) {
  expect_refused({"--strata-workers=many", node_program(), "dump"}, "--strata-workers: 'many'");
  expect_refused({"--strata-dump-signal", "KILL", node_program(), "dump"},
                 "--strata-dump-signal: 'KILL'");
  expect_refused({"--strata-detect-deadlock=perhaps", node_program(), "dump"},
                 "--strata-detect-deadlock: 'perhaps'");
}

TEST_F(pthread_command, shows_the_settings) {
  const result r = run_pthread({"--strata-help"});
  EXPECT_EQ(r.status, 0);
  EXPECT_TRUE(contains(r.out, "--strata-dump-signal")) << r.out;
}

TEST_F(pthread_command, prints_what_all_threads_do_on_a_signal) {
  for (const char* const workers : {"1", "2"}) {
    const result r = run_pthread(
        {"--strata-workers", workers, "--strata-dump-signal=USR1", "--", node_program(), "dump"});
    EXPECT_EQ(r.status, 0) << r.err;
    EXPECT_EQ(r.out, "ok\n") << r.err;
  }
}

// As without the command, where its parent ignores signals and where it does not.
TEST_F(pthread_command, leaves_signals_as_they_are) {
  for (const std::string ignored : {"", "trap '' PIPE CHLD USR1; "}) {
    const auto lines = [&](const words& before) {
      words line = before;
      line.insert(line.end(), {"grep", "-E", "Sig(Blk|Ign):", "/proc/self/status"});
      command c(line,
                {.around = {"sh", "-c", ignored + "exec \"$0\" \"$@\""}, .other = before.empty()});
      EXPECT_EQ(c.wait(), 0) << c.err();
      std::istringstream out(c.out());
      std::vector<std::uint64_t> sets;
      std::string name;
      // Beyond these are two of the C library's own, which it takes when there are threads.
      for (std::uint64_t set = 0; out >> name >> std::hex >> set;) sets.push_back(set & 0x7fffffff);
      return sets;
    };
    const auto natively = lines({});
    EXPECT_EQ(natively.size(), 2U);
    EXPECT_EQ(lines({"pthread"}), natively);
  }
}

// A switch stands alone: the next word is the program.
TEST_F(pthread_command, names_threads_that_wait_for_each_other) {
  for (const char* const bind : {"--strata-bind", "--strata-bind=no"}) {
    const result r = run_pthread({bind, "--strata-detect-deadlock", node_program(), "deadlock"});
    EXPECT_EQ(r.status, 1) << r.err;
    for (const char* const part :
         {"deadlock: 2 threads wait for each other in a circle", "\"anna\" holds the mutex at 0x",
          "\"bert\" holds the mutex at 0x"})
      EXPECT_TRUE(contains(r.err, part)) << r.err;
  }
}

}  // namespace
}  // namespace launch_test
