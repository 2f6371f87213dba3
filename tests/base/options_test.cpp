// SPDX-License-Identifier: Apache-2.0
#include "strata/options.hpp"

#include <gtest/gtest.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>
#include <vector>

#include "base/given_options.hpp"
#include "strata/error.hpp"

namespace {

namespace fs = std::filesystem;

// A command line that parse() may change, and what is left of it.
class command_line {
 public:
  command_line(std::initializer_list<const char*> arguments) {
    texts_.emplace_back("program");
    texts_.insert(texts_.end(), arguments.begin(), arguments.end());
    for (std::string& text : texts_) pointers_.push_back(text.data());
    pointers_.push_back(nullptr);
    count_ = static_cast<int>(texts_.size());
  }
  strata::options parse() { return strata::options::parse(count_, pointers_.data()); }
  strata::given_options parse_given() { return strata::parse_given(count_, pointers_.data()); }
  [[nodiscard]] std::vector<std::string> left() const {
    EXPECT_EQ(pointers_[static_cast<std::size_t>(count_)], nullptr);
    return {pointers_.begin() + 1, pointers_.begin() + count_};
  }

 private:
  std::vector<std::string> texts_;
  std::vector<char*> pointers_;
  int count_;
};

strata::options parse(std::initializer_list<const char*> arguments) {
  return command_line(arguments).parse();
}

std::string complaint_about(std::initializer_list<const char*> arguments) {
  try {
    parse(arguments);
  } catch (const strata::user_error& problem) {
    return problem.what();
  }
  return "no complaint";
}

// Tests start without any STRATA_ variable, and leave none.
class options_test : public testing::Test {
 protected:
  void SetUp() override { clear(); }
  void TearDown() override {
    clear();
    fs::remove(file_);
  }
  const char* write_config(const std::string& text) {
    file_ = testing::TempDir() + "strata_options_" +
            testing::UnitTest::GetInstance()->current_test_info()->name() + "_" +
            std::to_string(::getpid()) + ".conf";
    std::ofstream(file_) << text;
    return file_.c_str();
  }
  std::string file_;

 private:
  static void clear() {
    for (const char* name : {"STRATA_WORKERS", "STRATA_STACK_BYTES", "STRATA_STATS",
                             "STRATA_CONFIG", "STRATA_POLICY", "STRATA_WORKRES", "STRATA_NODE"}) {
      unsetenv(name);
    }
  }
};

TEST_F(options_test, defaults) {
  const strata::options o = parse({});
  EXPECT_EQ(o.workers, 0u);
  EXPECT_EQ(o.stack_bytes, 256u << 10);
  EXPECT_TRUE(o.bind);
  EXPECT_FALSE(o.stats);
  EXPECT_FALSE(o.profile);
  EXPECT_EQ(o.spin_us, 50u);
  EXPECT_EQ(o.policy, "steal");
  EXPECT_EQ(o.node, 0u);
  EXPECT_EQ(o.dump_signal, "none");
  EXPECT_FALSE(o.detect_deadlock);
  EXPECT_FALSE(o.print_binding);
  EXPECT_NO_THROW(o.validate());
}

TEST_F(options_test, flags_in_both_forms_are_removed_and_the_rest_stays) {
  command_line line{"input",
                    "--strata-workers",
                    "3",
                    "-n",
                    "--strata-stack-bytes=1M",
                    "--strata-stats",
                    "--strata-bind=no",
                    "--strata-spin-us=0",
                    "--strata-profile",
                    "--strata-print-binding",
                    "--strata-dump-signal=USR1",
                    "--strata-detect-deadlock",
                    "--strata-policy",
                    "steal",
                    "-5"};
  const strata::options o = line.parse();
  EXPECT_EQ(o.workers, 3u);
  EXPECT_EQ(o.stack_bytes, 1u << 20);
  EXPECT_TRUE(o.stats);
  EXPECT_FALSE(o.bind);
  EXPECT_EQ(o.spin_us, 0u);
  EXPECT_TRUE(o.profile);
  EXPECT_TRUE(o.print_binding);
  EXPECT_EQ(o.dump_signal, "USR1");
  EXPECT_TRUE(o.detect_deadlock);
  EXPECT_EQ(line.left(), (std::vector<std::string>{"input", "-n", "-5"}));
}

TEST_F(options_test, a_double_dash_ends_the_flags) {
  command_line line{"--strata-workers=2", "--", "--strata-workers=9", "--strata-nonsense"};
  EXPECT_EQ(line.parse().workers, 2u);
  EXPECT_EQ(line.left(),
            (std::vector<std::string>{"--", "--strata-workers=9", "--strata-nonsense"}));
}

TEST_F(options_test, the_last_flag_wins) {
  EXPECT_EQ(parse({"--strata-workers=2", "--strata-workers=4"}).workers, 4u);
}

TEST_F(options_test, flag_beats_variable_beats_file_beats_default) {
  const char* file =
      write_config("# machine room\nworkers = 2\nstack-bytes = 64K  # small\nspin_us=9\n\n");
  setenv("STRATA_CONFIG", file, 1);
  setenv("STRATA_WORKERS", "3", 1);
  const strata::options with_variable = parse({});
  EXPECT_EQ(with_variable.workers, 3u);
  EXPECT_EQ(with_variable.stack_bytes, 64u << 10);
  EXPECT_EQ(with_variable.spin_us, 9u);
  EXPECT_EQ(parse({"--strata-workers", "5"}).workers, 5u);
  unsetenv("STRATA_WORKERS");
  EXPECT_EQ(parse({}).workers, 2u);
  unsetenv("STRATA_CONFIG");
  EXPECT_EQ(parse({"--strata-config", file}).workers, 2u);
}

TEST_F(options_test, a_file_may_come_from_an_editor_of_another_system) {
  const char* file = write_config("\xEF\xBB\xBFworkers = 2\r\nstack-bytes = 64K\r\n");
  const strata::options read = parse({"--strata-config", file});
  EXPECT_EQ(read.workers, 2u);
  EXPECT_EQ(read.stack_bytes, 64u << 10);
}

TEST_F(options_test, an_empty_variable_is_not_set) {
  setenv("STRATA_WORKERS", "", 1);
  EXPECT_EQ(parse({}).workers, 0u);
}

TEST_F(options_test, an_unknown_variable_is_reported_not_refused) {
  setenv("STRATA_WORKRES", "3", 1);
  testing::internal::CaptureStderr();
  EXPECT_EQ(parse({}).workers, 0u);
  const std::string printed = testing::internal::GetCapturedStderr();
  EXPECT_NE(printed.find("unknown variable STRATA_WORKRES; did you mean STRATA_WORKERS?"),
            std::string::npos)
      << printed;
  EXPECT_EQ(std::count(printed.begin(), printed.end(), '\n'), 1);
}

// Programs that a node of a job starts have its variable.
TEST_F(options_test, the_number_of_a_node_is_the_launchers_to_say) {
  setenv("STRATA_NODE", "2", 1);
  testing::internal::CaptureStderr();
  EXPECT_EQ(parse({}).node, 0u);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(complaint_about({"--strata-node=2"}).find("unknown flag --strata-node"), 0u);
}

TEST_F(options_test, an_unknown_flag_is_refused_with_the_nearest_names) {
  EXPECT_EQ(
      complaint_about({"--strata-worker=2"}),
      "unknown flag --strata-worker; did you mean --strata-workers? --strata-help lists them all");
  EXPECT_EQ(complaint_about({"--strata-"}).find("unknown flag --strata-"), 0u);
}

TEST_F(options_test, long_words_are_quoted_in_brief) {
  const std::string much(65'536, '9');
  for (const char* flag :
       {"--strata-workers=", "--strata-stack-bytes=", "--strata-policy=", "--strata-reception=",
        "--strata-networks=", "--strata-profile=", "--strata-"}) {
    const std::string complaint = complaint_about({(flag + much).c_str()});
    EXPECT_NE(complaint.find("99..."), std::string::npos) << complaint.substr(0, 1000);
    EXPECT_LT(complaint.size(), 500U) << flag;
  }
}

TEST_F(options_test, a_refused_line_is_left_unchanged) {
  command_line line{"--strata-workers=2", "--strata-nonsense"};
  EXPECT_THROW(line.parse(), strata::user_error);
  EXPECT_EQ(line.left(), (std::vector<std::string>{"--strata-workers=2", "--strata-nonsense"}));
}

TEST_F(options_test, bad_values_say_where_and_what) {
  EXPECT_EQ(complaint_about({"--strata-workers", "0"}),
            "--strata-workers: '0' is not a whole number from 1 to 4096");
  EXPECT_EQ(
      complaint_about({"--strata-stack-bytes=4K"}),
      "--strata-stack-bytes: '4K' is not a number of bytes from 16K to 1G (suffixes K, M, G)");
  EXPECT_EQ(complaint_about({"--strata-stats=perhaps"}),
            "--strata-stats: 'perhaps' is not yes or no");
  EXPECT_EQ(complaint_about({"--strata-workers"}),
            "--strata-workers needs a value; --strata-help says which");
  setenv("STRATA_WORKERS", "many", 1);
  EXPECT_EQ(complaint_about({}), "STRATA_WORKERS: 'many' is not a whole number from 1 to 4096");
}

TEST_F(options_test, transports_go_together_only_where_memory_is_one_of_them) {
  for (const char* const good : {"auto", "udp", "shm+tcp", "shm+ucx", "shm+udp"})
    EXPECT_EQ(parse({"--strata-transport", good}).transport, good);
  for (const std::string bad : {"shm+foo", "ucx+udp", "udp+shm", "shm+"})
    EXPECT_EQ(complaint_about({"--strata-transport", bad.c_str()}),
              "--strata-transport: '" + bad +
                  "' is not a choice; the choices are: auto, shm, tcp, ucx, udp, shm+tcp, "
                  "shm+ucx, shm+udp");
}

TEST_F(options_test, unknown_policies_are_refused_and_the_choices_named) {
  EXPECT_EQ(complaint_about({"--strata-policy=random"}),
            "--strata-policy: 'random' is not a choice; the choices are: steal, rotator, locked");
}

TEST_F(options_test, bad_files_say_where_and_what) {
  EXPECT_EQ(complaint_about({"--strata-config=/nonexistent/file"}),
            "cannot read the configuration file /nonexistent/file: No such file or directory");
  EXPECT_EQ(complaint_about({"--strata-config=/"}),
            "cannot read the configuration file /: Is a directory");
  EXPECT_EQ(complaint_about({"--strata-config=/dev/zero"}),
            "/dev/zero is longer than 1 MiB: the configuration file is a text of some lines");
  const std::string no_text = write_config("workers = 2\n" + std::string(1, '\0'));
  EXPECT_EQ(complaint_about({"--strata-config", no_text.c_str()}),
            no_text + " has bytes of 0 in it: the configuration file is a text of some lines");
  EXPECT_EQ(complaint_about({"--strata-config="}), "--strata-config needs the name of a file");
  const std::string file = write_config("workers = 2\n\nworkers 3\n");
  EXPECT_EQ(complaint_about({"--strata-config", file.c_str()}),
            file + ":3: 'workers 3' is not of the form key = value");
  write_config("config = other\n");
  EXPECT_EQ(complaint_about({"--strata-config", file.c_str()}),
            file + ":1: a configuration file cannot name another one");
  write_config("wrokers = 2\n");
  EXPECT_EQ(complaint_about({"--strata-config", file.c_str()}),
            file + ":1: unknown key 'wrokers'; did you mean workers? --strata-help lists them all");
  write_config("workers = 5000\n");
  EXPECT_EQ(complaint_about({"--strata-config", file.c_str()}),
            file + ":1: workers: '5000' is not a whole number from 1 to 4096");
}

TEST_F(options_test, help_prints_every_setting_and_ends_with_zero) {
  // The process ends, so the text is looked at from outside: stdout is stderr there.
  EXPECT_EXIT(
      {
        dup2(2, 1);
        parse({"--strata-help"});
      },
      testing::ExitedWithCode(0),
      "--strata-workers N .*STRATA_WORKERS .*\n(.*\n)*.*--strata-stack-bytes "
      "SIZE(.*\n)*.*--strata-config FILE");
}

TEST_F(options_test, validate_refuses_what_a_program_filled_in_wrongly) {
  strata::options o;
  o.workers = 4097;
  EXPECT_THROW(o.validate(), strata::misuse_error);
  o = {};
  o.stack_bytes = 1;
  EXPECT_THROW(o.validate(), strata::misuse_error);
  o = {};
  o.policy = "random";
  EXPECT_THROW(o.validate(), strata::misuse_error);
  o = {};
  o.launch = "nobody";
  EXPECT_THROW(o.validate(), strata::misuse_error);
  o.launch = "auto";
  EXPECT_NO_THROW(o.validate());
  o.node = 65'535;
  EXPECT_NO_THROW(o.validate());
  o.node = 70'000;
  try {
    o.validate();
    ADD_FAILURE();
  } catch (const strata::misuse_error& e) {
    EXPECT_STREQ(e.what(), "strata::options: node is 70000, not from 0 to 65535");
  }
}

TEST_F(options_test, what_is_given_is_told_from_what_is_not) {
  const auto given = [](std::initializer_list<const char*> arguments) {
    return command_line(arguments).parse_given();
  };
  EXPECT_FALSE(given({}).has("stack-bytes"));
  // Also where it says what is so anyway.
  EXPECT_TRUE(given({"--strata-stack-bytes=256K"}).has("stack-bytes"));
  setenv("STRATA_STACK_BYTES", "", 1);
  EXPECT_FALSE(given({}).has("stack-bytes"));
  setenv("STRATA_STACK_BYTES", "256K", 1);
  EXPECT_TRUE(given({}).has("stack-bytes"));
  EXPECT_FALSE(given({}).has("workers"));
  unsetenv("STRATA_STACK_BYTES");
  EXPECT_TRUE(given({"--strata-config", write_config("stack_bytes = 256K\n")}).has("stack-bytes"));
}

constexpr int nobody = 65'534, another = 65'533;
constexpr int has_no_rights = 77;

// In a copy of this program that belongs to another user, with set-user-ID.
[[noreturn]] void parse_with_rights_of_its_own() {
  if (getauxval(AT_SECURE) == 0) std::_Exit(has_no_rights);
  setenv("STRATA_CONFIG", "/proc/self/status", 1);  // a file that would be complained about
  setenv("STRATA_WORKERS", "3", 1);
  try {
    if (parse({}).workers != 0 || parse({"--strata-workers=2"}).workers != 2) std::_Exit(1);
  } catch (const strata::user_error& problem) {
    std::_Exit(2);
  }
  try {
    (void)parse({"--strata-config=/dev/null"});
    std::_Exit(3);
  } catch (const strata::user_error& problem) {
    std::_Exit(0);
  }
}

TEST_F(options_test, variables_are_not_for_programs_with_rights_of_their_own) {
  if (std::getenv("OPTIONS_TEST_IS_COPY") != nullptr) parse_with_rights_of_its_own();
  if (getuid() != 0) GTEST_SKIP() << "only root can give a program rights";
  const std::string program = testing::TempDir() + "strata_options_" + std::to_string(getpid());
  fs::copy_file("/proc/self/exe", program);
  ASSERT_EQ(chown(program.c_str(), another, another), 0);
  ASSERT_EQ(chmod(program.c_str(), 04755), 0);
  const pid_t child = fork();
  if (child == 0) {
    const std::string self = std::string("--gtest_filter=*.") +
                             testing::UnitTest::GetInstance()->current_test_info()->name();
    setenv("OPTIONS_TEST_IS_COPY", "yes", 1);
    if (setgid(nobody) == 0 && setuid(nobody) == 0)
      execl(program.c_str(), program.c_str(), self.c_str(), nullptr);
    std::_Exit(has_no_rights);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  fs::remove(program);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == has_no_rights) GTEST_SKIP() << "nobody is given rights here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
