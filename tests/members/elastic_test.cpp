// SPDX-License-Identifier: Apache-2.0
// Nodes that come to real jobs and leave them: `strata run --elastic`, `strata join`, `strata
// leave`.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "../common/in_turn.hpp"
#include "elastic_job.hpp"

namespace {

using launch_test::words;

using launch_test::elastic_job;

class elastic : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (strata::test::left_to_the_other_sanitizer()) GTEST_SKIP() << "the other sanitizer's turn";
  }
  static words transport() { return {"--transport", GetParam()}; }
};
constexpr auto name_of_way = [](const auto& p) {
  std::string name = p.param;
  std::replace(name.begin(), name.end(), '+', '_');
  return name;
};
INSTANTIATE_TEST_SUITE_P(ways, elastic, testing::Values("auto", "shm", "tcp", "udp", "shm+udp"),
                         name_of_way);
#if defined(STRATA_HAS_UCX)
INSTANTIATE_TEST_SUITE_P(fast_networks, elastic, testing::Values("ucx", "shm+ucx"), name_of_way);
#endif

void come_and_go(elastic_job job) {
  job.wait_for("computes");
  job.join();
  job.leave("1");
  job.join();
  job.leave("2");
  job.expect_ok();
}

TEST_P(elastic, nodes_come_and_go_while_the_job_computes) {
  come_and_go({"2", "rounds", transport()});
}

TEST_P(elastic, a_leaver_hands_over_the_names_at_home_there) {
  elastic_job job("2", "names", transport());
  job.wait_for("published");
  job.leave("1");
  job.join();
  job.expect_ok();
}

TEST_P(elastic, a_leaver_takes_its_names_along) {
  elastic_job job("2", "leave-behind", transport());
  job.wait_for("left behind");
  job.leave("1");
  job.join();
  job.expect_ok();
}

TEST_P(elastic, a_leaver_leaves_frames_behind_of_what_has_failed) {
  elastic_job job("2", "leave-frames", transport());
  job.wait_for("failed");
  job.leave("1");
  job.expect_ok();
}

TEST_P(elastic, a_call_on_every_node_reaches_those_behind_one_that_has_left) {
  elastic_job job("3", "leave-between", transport());
  job.wait_for("begins");
  job.leave("1");
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

// Others give a newcomer work as soon as they know it, which may be before the launcher does.
TEST_P(elastic, the_loss_of_a_node_that_the_launcher_does_not_know_yet_ends_the_job) {
  elastic_job job("1", "early-loss", transport());
  job.wait_for("listens");
  job.try_to_join();
  job.wait_for("told");
  EXPECT_NE(job.expect_end(137).find("node 1 was killed by signal 9"), std::string::npos);
}

// Whatever the program does about it: nobody else would name the node.
TEST_P(elastic, the_launcher_hears_of_a_loss_before_the_program) {
  elastic_job job("1", "abrupt-loss", transport(), {}, {"env", "WORDS_ARE_LATE=1"});
  job.wait_for("listens");
  job.try_to_join();
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

TEST_P(elastic, a_number_that_never_came_is_as_one_that_has_left) {
  elastic_job job("1", "numbers", transport(), {},
                  {"sh", "-c", "[ \"$STRATA_NODE\" != 1 ] || exit 3; exec \"$@\"", "sh"});
  job.wait_for("listens");
  (void)job.join_in_vain();
  job.join();
  job.wait_for("heard");
  job.leave("2");
  job.expect_ok();
}

// Everybody was told of it and waits for its connection; whoever comes next does not have to wait
// for the end of that.
TEST_P(elastic, a_node_that_dies_at_the_door_keeps_nobody_waiting) {
  if (GetParam() == std::string("udp") || GetParam() == std::string("ucx"))
    GTEST_SKIP() << "nobody waits for connections there";
  for (const bool another_comes : {true, false}) {
    elastic_job job("1", another_comes ? "numbers" : "door", transport(), {},
                    {"env", "DIES_AT_THE_DOOR=1"});
    job.wait_for("listens");
    EXPECT_NE(job.join_in_vain().find("node 1 ended with status 3 before it had joined"),
              std::string::npos);
    if (another_comes) {
      job.join();
      job.wait_for("heard");
      job.leave("2");
    }
    job.expect_ok();
  }
}

TEST(elastic_receptions, nodes_come_and_go_with_each) {
  for (const char* const how : {"blocking", "polling", "watchdog"}) {
    SCOPED_TRACE(how);
    come_and_go({"2", "rounds", {}, {std::string("--strata-reception=") + how}});
  }
}

}  // namespace
