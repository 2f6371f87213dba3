// SPDX-License-Identifier: Apache-2.0
// The same job in several ways: over each transport, with other settings.
#pragma once
#include <gtest/gtest.h>

#include <array>
#include <ostream>
#include <string>

#include "../common/in_turn.hpp"
#include "command.hpp"

namespace launch_test {

#if defined(STRATA_HAS_UCX)
inline constexpr std::array transports = {"shm", "tcp", "udp", "ucx"};
#else
inline constexpr std::array transports = {"shm", "tcp", "udp"};
#endif

struct way {
  const char* name;
  const char* nodes;
  const char* transport;
  words settings{};
  // Part of what CTest calls a test: it is the same in each run.
  friend void PrintTo(const way& w, std::ostream* out) { *out << w.name; }
};
// Of parameters that have one.
inline constexpr auto name_of_param = [](const auto& p) { return std::string(p.param.name); };

class in_several_ways : public testing::TestWithParam<way> {
 protected:
  void SetUp() override {
    if (strata::test::left_to_the_other_sanitizer()) GTEST_SKIP() << "the other sanitizer's turn";
  }
  static void run(const std::string& what, const words& more = {}) {
    words arguments = GetParam().settings;
    arguments.insert(arguments.end(), more.begin(), more.end());
    arguments.push_back(what);
    expect_ok(
        launch_test::run({"-n", GetParam().nodes, "--transport", GetParam().transport}, arguments));
  }
};

class over_each_transport : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (strata::test::left_to_the_other_sanitizer()) GTEST_SKIP() << "the other sanitizer's turn";
  }
};
inline constexpr auto name_of_text = [](const auto& p) { return std::string(p.param); };

}  // namespace launch_test
