// SPDX-License-Identifier: Apache-2.0
// A job that nodes come to and leave, and the user's commands about it.
#pragma once
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>

#include "command.hpp"

namespace launch_test {

namespace fs = std::filesystem;

// A job of this test, and the commands that are about it. It ends at SIGUSR1.
class elastic : public testing::Test {
 protected:
  elastic() {
    std::string pattern = testing::TempDir() + "strata-elastic-XXXXXX";
    folder = ::mkdtemp(pattern.data());
    std::ofstream(folder / "ssh") << launch_test::ssh_to_this_machine;
    fs::permissions(folder / "ssh", fs::perms::owner_all);
  }
  ~elastic() override {
    job_command.reset();
    fs::remove_all(folder);
  }

  [[nodiscard]] command::setting here() const {
    return {.variables = {"XDG_RUNTIME_DIR=" + folder.string(),
                          "STRATA_SSH=" + (folder / "ssh").string()},
            .input = {},
            .around = around};
  }
  // Its nodes do `actions` between the start and their part in the job.
  void open(const words& flags, const words& actions, const std::string& last = "elastic") {
    ASSERT_TRUE(try_to_open(flags, actions, last)) << job_command->err();
  }
  // False if it ends before.
  bool try_to_open(const words& flags, const words& actions, const std::string& last = "elastic") {
    words all{"--elastic", "--bind", "none", "--workers", "1"};
    all.insert(all.end(), flags.begin(), flags.end());
    words what{"report:10"};
    what.insert(what.end(), actions.begin(), actions.end());
    what.push_back(last);
    job_command = std::make_unique<command>(launch_test::run(all, what), here());
    const std::string before = " is open: strata join ";
    if (!job_command->wait_for_error_output(before)) return false;
    if (!job_command->wait_for_error_output("\n")) return false;
    const std::string& said = job_command->err();
    job = said.substr(said.find(before) + before.size(), 8);
    return true;
  }
  // With a limit for who joins that the tests wait for: short, but as long as node 0 takes for it
  // on a busy machine. As it is said.
  std::string open_with_short_limit(const words& actions) {
    for (int limit_s = 3;; limit_s *= 2) {
      const std::string limit = std::to_string(limit_s);
      if (try_to_open({"--start-limit", limit}, actions)) return limit + " s";
      const std::string late = "node 0 did not join within " + limit + " s";
      if (job_command->err().find(late) == std::string::npos)
        throw std::runtime_error("no job is open: " + job_command->err());
    }
  }
  result ask(const words& what) const {
    command c(what, here());
    const int status = c.wait();
    return {status, c.out(), c.err()};
  }
  void expect(const words& what, int status, const std::string& out, const std::string& err) const {
    const result r = ask(what);
    EXPECT_EQ(r.status, status) << r.err;
    EXPECT_EQ(r.out, out);
    EXPECT_EQ(r.err, err);
  }
  void expect_joined(const std::string& node) const {
    expect({"join", job}, 0, "node " + node + " has joined job " + job + "\n", "");
  }
  // What `strata jobs` says of the nodes. It waits 2 s for a launcher, which may not have been
  // running for so long: then it is asked again.
  [[nodiscard]] std::string members() const {
    std::string all;
    do {
      all = ask({"jobs"}).out;
    } while (all.find(job + "  its launcher does not answer\n") != std::string::npos);
    std::istringstream lines(all);
    for (std::string line; std::getline(lines, line);) {
      std::istringstream fields(line);
      std::string name, launcher, nodes, program;
      if (fields >> name >> launcher >> nodes >> program && name == job) return nodes;
    }
    return "none";
  }
  // What the job wrote, without remarks on too few cores and the line that says that it is open.
  [[nodiscard]] std::string complaints() const {
    std::string kept;
    std::istringstream lines(job_command->err());
    for (std::string line; std::getline(lines, line);) {
      if (line.find("expect no speed-up") == std::string::npos &&
          line.find(" is open: ") == std::string::npos) {
        kept += line + "\n";
      }
    }
    return kept;
  }
  void end_well() {
    job_command->signal(SIGUSR1);
    EXPECT_EQ(job_command->wait(), 0);
    EXPECT_EQ(complaints(), "");
    EXPECT_EQ(job_command->processes_left(), 0);
    EXPECT_TRUE(fs::is_empty(folder / "strata"));
  }

  fs::path folder;
  words around{};  // what runs the commands
  std::string job;
  std::unique_ptr<command> job_command;
};

}  // namespace launch_test
