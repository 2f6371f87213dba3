// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "command.hpp"

namespace launch_test {

// A job that others can come to.
class elastic_job {
 public:
  elastic_job(const std::string& nodes, const std::string& what, const words& flags = {},
              const words& settings = {}, const words& around = {},
              const command::setting& how = {})
      : job_(command_line(nodes, what, flags, settings, around), how) {
    const std::string before = " is open: strata join ";
    EXPECT_TRUE(job_.wait_for_error_output(before)) << job_.err();
    // The line is written at once, but may be read in parts.
    EXPECT_TRUE(job_.wait_for_error_output("\n"));
    const std::size_t at = job_.err().find(before) + before.size();
    name_ = job_.err().substr(at, job_.err().find('\n', at) - at);
  }
  void wait_for(const std::string& text) {
    EXPECT_TRUE(job_.wait_for_output(text)) << job_.out() << job_.err();
  }
  [[nodiscard]] bool has_said(const std::string& text) const {
    return job_.out().find(text) != std::string::npos;
  }
  [[nodiscard]] const std::string& name() const { return name_; }

  void join(const words& more = {}) const { expect_done(to_join(more)); }
  // Whether it comes or not.
  void try_to_join(const words& more = {}) const { command(to_join(more)).wait(); }
  // Why a node does not come, or go.
  [[nodiscard]] std::string join_in_vain(const words& more = {}) const {
    return refusal_of(to_join(more));
  }
  [[nodiscard]] std::string leave_in_vain(const std::string& node) const {
    return refusal_of({"leave", name_, node});
  }
  void leave(const std::string& node) const { expect_done({"leave", name_, node}); }

  // Returns what the launcher has said.
  std::string expect_end(int status) {
    EXPECT_EQ(job_.wait(), status) << job_.out() << job_.err();
    job_.wait_for_no_process();
    return job_.err();
  }
  void expect_ok() {
    expect_end(0);
    EXPECT_NE(job_.out().find("ok\n"), std::string::npos) << job_.out() << job_.err();
  }

 private:
  [[nodiscard]] words to_join(const words& more) const {
    words all{"join", name_};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  static std::string refusal_of(const words& what) {
    command c(what);
    EXPECT_EQ(c.wait(), 1);
    return c.err();
  }
  static void expect_done(const words& what) {
    command c(what);
    EXPECT_EQ(c.wait(), 0) << c.err();
  }
  static words command_line(const std::string& nodes, const std::string& what, const words& flags,
                            const words& settings, const words& around) {
    words first{"-n", nodes, "--elastic=8"};
    first.insert(first.end(), flags.begin(), flags.end());
    words second = settings;
    second.push_back(what);
    words all = launch_test::run(first, second);
    const auto program = std::find(all.begin(), all.end(), launch_test::node_program());
    all.insert(program, around.begin(), around.end());
    return all;
  }

  command job_;
  std::string name_;
};

}  // namespace launch_test
