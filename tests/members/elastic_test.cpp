// SPDX-License-Identifier: Apache-2.0
// Nodes that come to real jobs and leave them: `strata run --elastic`, `strata join`, `strata
// leave`.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "command.hpp"

namespace {

using launch_test::command;
using words = std::vector<std::string>;

// A job that others can come to.
class elastic_job {
 public:
  elastic_job(const std::string& nodes, const std::string& what, const words& flags = {},
              const words& settings = {}, const words& around = {})
      : job_(command_line(nodes, what, flags, settings, around)) {
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
  [[nodiscard]] const std::string& name() const { return name_; }

  void join(const words& more = {}) const {
    words all{"join", name_};
    all.insert(all.end(), more.begin(), more.end());
    expect_done(all);
  }
  // Why a node does not come.
  [[nodiscard]] std::string join_in_vain() const {
    command c({"join", name_});
    EXPECT_EQ(c.wait(), 1);
    return c.err();
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

class elastic : public testing::TestWithParam<const char*> {
 protected:
  static words transport() { return {"--transport", GetParam()}; }
};
INSTANTIATE_TEST_SUITE_P(ways, elastic, testing::Values("auto", "shm", "tcp"),
                         [](const auto& p) { return std::string(p.param); });

TEST_P(elastic, nodes_come_and_go_while_the_job_computes) {
  elastic_job job("2", "rounds", transport());
  job.wait_for("computes");
  job.join();
  job.leave("1");
  job.join();
  job.leave("2");
  job.expect_ok();
}

TEST_P(elastic, a_leaver_hands_over_the_names_at_home_there) {
  elastic_job job("2", "names", transport());
  job.wait_for("published");
  job.leave("1");
  job.join();
  job.expect_ok();
}

TEST_P(elastic, a_leaver_stays_until_nothing_holds_it) {
  elastic_job job("2", "holds", transport());
  job.wait_for("holds");
  job.leave("1");
  job.wait_for("gone");
  job.expect_ok();
}

TEST_P(elastic, a_job_of_one_node_grows) {
  elastic_job job("1", "greetings", transport());
  job.wait_for("listens");
  job.join();
  job.wait_for("heard");
  job.leave("1");
  job.expect_ok();
}

TEST_P(elastic, the_loss_of_a_node_that_came_ends_the_job) {
  elastic_job job("1", "loss", transport());
  job.wait_for("listens");
  job.join();
  job.wait_for("told");
  EXPECT_NE(job.expect_end(137).find("node 1 was killed by signal 9"), std::string::npos);
}

TEST_P(elastic, a_node_that_fails_to_come_is_no_loss) {
  elastic_job job("1", "greetings", transport(), {},
                  {"sh", "-c", "[ \"$STRATA_NODE\" != 1 ] || exit 3; exec \"$@\"", "sh"});
  job.wait_for("listens");
  EXPECT_NE(job.join_in_vain().find("node 1 ended with status 3 before it had joined"),
            std::string::npos);
  job.join();
  job.wait_for("heard");
  job.leave("2");
  job.expect_ok();
}

TEST(elastic_receptions, nodes_come_and_go_with_each) {
  for (const char* const how : {"blocking", "polling", "watchdog"}) {
    SCOPED_TRACE(how);
    elastic_job job("2", "rounds", {}, {std::string("--strata-reception=") + how});
    job.wait_for("computes");
    job.join();
    job.leave("1");
    job.join();
    job.leave("2");
    job.expect_ok();
  }
}

}  // namespace
