// SPDX-License-Identifier: Apache-2.0
// For jobs on several hosts.
#pragma once
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "../common/in_turn.hpp"
#include "command.hpp"

namespace strata::test {

// Several hosts, where no node reads the memory of one on another host: this machine, with a script
// in place of ssh.
class several_hosts : public testing::Test {
 protected:
  several_hosts() {
    std::string pattern = testing::TempDir() + "strata-ssh-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    const auto script = folder_ / "ssh";
    std::ofstream(script) << launch_test::ssh_to_this_machine;
    std::filesystem::permissions(script, std::filesystem::perms::owner_all);
    how_.variables = {"STRATA_SSH=" + script.string(), "UCX_NET_DEVICES=lo", "UCX_TLS=tcp"};
  }
  ~several_hosts() override { std::filesystem::remove_all(folder_); }
  void SetUp() override {
    if (left_to_the_other_sanitizer()) GTEST_SKIP() << "the other sanitizer's turn";
  }

  std::filesystem::path folder_;
  launch_test::command::setting how_{};
};

}  // namespace strata::test
