// SPDX-License-Identifier: Apache-2.0
// A node leaves a running job, or may not.
#include <gtest/gtest.h>

#include <csignal>

#include "elastic_course.hpp"

namespace launch_test {
namespace {

TEST_F(elastic_course, a_node_leaves) {
  open(3);
  job->ask_leave(somebody, 1);
  EXPECT_EQ(got(1), kinds{frame_kind::leave});
  drained(1);
  EXPECT_EQ(got(1), (kinds{frame_kind::leave, frame_kind::go}));
  finish(1);
  EXPECT_TRUE(answers.empty());
  end(1, 0);
  EXPECT_EQ(answers, lines{"70: left 1"});
  EXPECT_EQ(job->members(), (std::vector<node_id>{0, 2}));
  EXPECT_TRUE(got(0).empty());
  // Who comes later hears of it.
  ask_join();
  EXPECT_EQ(spawned.at(0).second, std::vector<node_id>{1});
  reach(3);
  EXPECT_EQ(got(1).size(), 2U);
  admit(0, 3);
  admit(2, 3);
  const auto everybody = unpack_directory(sent[3].at(0).payload);
  ASSERT_EQ(everybody.size(), 4U);
  EXPECT_EQ(everybody[1].host, "");
  EXPECT_EQ(everybody[1].port, 0);
  EXPECT_EQ(everybody[2].port, 2);
  enter(3);
  for (const node_id n : {2, 0}) leave(n);
  // One that came late and is slow, but has finished, is waited for as any other.
  finish(3);
  pass(10 * second);
  EXPECT_EQ(said, lines{"node 0 has ended; waiting for node 3 (Ctrl-C ends the wait)"});
  end(3, 0);
  expect_over(0);
}

TEST_F(elastic_course, who_has_left_is_not_waited_for) {
  open(2);
  job->ask_leave(somebody, 1);
  drained(1);
  finish(1);
  job->on_line_ended(1, "", now);
  leave(0);
  expect_over(0);
  EXPECT_TRUE(said.empty());
  EXPECT_EQ(answers, lines{"70: left 1"});
}

TEST_F(elastic_course, a_gateway_refuses_to_leave) {
  open(2);
  job->ask_leave(somebody, 1);
  word(1, word_to_launcher::refuses, 1);
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_NE(answers[0].find("node 1 cannot leave: nodes that share no network"), std::string::npos);
  // It is a member as before.
  ask_join();
  EXPECT_EQ(answers.size(), 1U);
}

TEST_F(elastic_course, the_last_one_may_be_one_that_leaves) {
  open(2);
  job->ask_leave(somebody, 1);
  drained(1);
  leave(0);
  EXPECT_FALSE(job->over());
  finish(1);
  EXPECT_TRUE(job->over());
  EXPECT_EQ(answers, lines{"70: left 1"});
}

TEST_F(elastic_course, leaving_is_refused) {
  open(2);
  ask_join();
  job->ask_leave(another, 0);
  job->ask_leave(another, 7);
  job->ask_leave(another, 2);
  job->ask_leave(somebody, 1);
  job->ask_leave(another, 1);
  end(2, 1);
  job->ask_leave(another, 2);
  drained(1);
  leave(1);
  job->ask_leave(another, 1);
  EXPECT_EQ(answers,
            (lines{"71: node 0 cannot leave; the job ends with it", "71: there is no node 7",
                   "71: node 2 has not joined yet", "71: node 1 is leaving already",
                   "70: node 2 ended with status 1 before it had joined", "71: node 2 never joined",
                   "70: left 1", "71: node 1 has left already"}));
}

TEST_F(elastic_course, who_stays_may_ask_again) {
  open(3);
  job->ask_leave(somebody, 1);
  job->ask_leave(another, 2);
  drained(2);
  drained(1);
  ask_join();
  EXPECT_EQ(got(1), kinds{frame_kind::leave});
  EXPECT_TRUE(spawned.empty());
  stays(2);
  EXPECT_EQ(got(1), (kinds{frame_kind::leave, frame_kind::go}));
  stays(1);
  EXPECT_EQ(spawned.size(), 1U);
  drained(1);
  EXPECT_EQ(got(1).size(), 2U);
  come(3);
  EXPECT_EQ(got(1), (kinds{frame_kind::leave, frame_kind::go, frame_kind::admit, frame_kind::go}));
  leave(1);
  drained(2);
  leave(2);
  EXPECT_EQ(answers, (lines{"70: joined 3", "70: left 1", "71: left 2"}));
}

TEST_F(elastic_course, a_join_goes_on_while_a_node_hands_over_its_work) {
  open(2);
  job->ask_leave(another, 1);
  ask_join();
  reach(2);
  drained(1);
  EXPECT_EQ(got(1), (kinds{frame_kind::leave, frame_kind::admit}));
  admit(0, 2);
  admit(1, 2);
  EXPECT_EQ(got(1).size(), 2U);
  enter(2);
  EXPECT_EQ(got(1).back(), frame_kind::go);
}

TEST_F(elastic_course, dying_while_leaving_loses_the_job) {
  for (const bool granted : {false, true}) {
    said.clear();
    answers.clear();
    open(2);
    job->ask_leave(somebody, 1);
    if (granted) drained(1);
    kill(1, SIGKILL);
    EXPECT_EQ(said, lines{"node 1 was killed by signal 9 (SIGKILL); the job is stopped"});
    EXPECT_EQ(answers, lines{"70: the job is being stopped"});
    EXPECT_EQ(got(0), kinds{frame_kind::lost});
    end(0, 9);
    EXPECT_EQ(job->status(), 137);
  }
}

TEST_F(elastic_course, a_leaver_that_ends_because_another_is_lost_has_not_left) {
  open(3);
  job->ask_leave(somebody, 1);
  drained(1);
  EXPECT_EQ(got(1), (kinds{frame_kind::leave, frame_kind::go}));
  miss(1, 2);
  leave(1, 1);
  // How the process of node 2 ends would say more.
  EXPECT_TRUE(said.empty());
  EXPECT_TRUE(answers.empty());
  pass(10 * second);
  EXPECT_EQ(said, lines{"node 2 is lost: silent; the job is stopped"});
  EXPECT_EQ(answers, lines{"70: the job is being stopped"});
}

TEST_F(elastic_course, failing_after_having_left_counts) {
  open(2);
  job->ask_leave(somebody, 1);
  drained(1);
  leave(1, 5);
  EXPECT_EQ(said, lines{"node 1 ended with status 5 after it had finished"});
  EXPECT_EQ(answers, lines{"70: node 1 ended with status 5 after it had finished"});
  EXPECT_TRUE(job->is_running());
  leave(0);
  EXPECT_EQ(job->status(), 5);
}

}  // namespace
}  // namespace launch_test
