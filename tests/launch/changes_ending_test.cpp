// SPDX-License-Identifier: Apache-2.0
// The job, one of its nodes or the launcher's user ends while a node comes or leaves.
#include <gtest/gtest.h>

#include <csignal>
#include <functional>

#include "elastic_course.hpp"

namespace launch_test {
namespace {

TEST_F(elastic_course, words_out_of_turn_stop_the_job) {
  for (const auto& nonsense :
       std::vector<std::function<void()>>{[&] { drained(1); }, [&] { stays(1); }, [&] { enter(1); },
                                          [&] { admit(1, 1); }, [&] { admit(1, 9); }}) {
    said.clear();
    open(2);
    nonsense();
    ASSERT_EQ(said.size(), 1U);
    EXPECT_EQ(said[0].rfind("node 1: the line between launcher and node: ", 0), 0U) << said[0];
  }
  begin(2);
  all_reach(2);
  said.clear();
  drained(1);
  EXPECT_EQ(said.size(), 1U);
}

TEST_F(elastic_course, the_job_ends_before_a_node_is_let_in) {
  open(2);
  ask_join();
  ask_join(another);
  reach(2);
  admit(1, 2);
  finish(1);
  EXPECT_EQ(answers, (lines{"71: the job is ending", "70: the job is ending"}));
  EXPECT_EQ(killed, std::vector<node_id>{2});
  EXPECT_EQ(got(0).back(), frame_kind::lost);
  EXPECT_EQ(got(1).back(), frame_kind::admit);
  ask_join();
  EXPECT_EQ(answers.back(), "70: the job is ending");
  end(1, 0);
  leave(0);
  expect_over(0);
  EXPECT_TRUE(said.empty());
}

TEST_F(elastic_course, the_job_ends_while_a_node_hands_over_its_work) {
  open(3);
  job->ask_leave(somebody, 1);
  job->ask_leave(another, 2);
  drained(2);
  stays(2);
  finish(0);
  EXPECT_EQ(answers, (lines{"70: the job is ending", "71: the job is ending"}));
  // Words on their way, and the end of the job in place of the answer.
  drained(1);
  drained(2);
  stays(2);
  EXPECT_EQ(got(1), kinds{frame_kind::leave});
  for (node_id n = 0; n < 3; ++n) leave(n);
  expect_over(0);
  EXPECT_TRUE(said.empty());
}

TEST_F(elastic_course, the_job_ends_just_when_a_node_is_let_in) {
  for (const bool enters : {false, true}) {
    answers.clear();
    killed.clear();
    open(2);
    ask_join(somebody, 2);
    reach(2);
    admit(0, 2);
    admit(1, 2);
    finish(1);
    finish(0);
    EXPECT_TRUE(answers.empty());
    if (enters) {
      enter(2);
      EXPECT_EQ(answers, (lines{"70: joined 2", "70: the job is ending"}));
      leave(2);
    } else {
      pass(2 * second);
      EXPECT_EQ(answers, lines{"70: the job is ending"});
      EXPECT_EQ(killed, std::vector<node_id>{2});
    }
    end(1, 0);
    end(0, 0);
    expect_over(0);
    EXPECT_TRUE(said.empty());
  }
}

TEST_F(elastic_course, all_end_and_the_newcomer_does_not) {
  open(1);
  ask_join();
  reach(1);
  admit(0, 1);
  leave(0);
  EXPECT_TRUE(job->over());
  EXPECT_EQ(answers, lines{"70: the job has ended"});
  EXPECT_EQ(killed, std::vector<node_id>{1});
  EXPECT_EQ(job->status(), 0);
}

TEST_F(elastic_course, a_member_is_lost_while_another_comes) {
  open(3);
  ask_join();
  ask_join(another);
  reach(3);
  kill(1, SIGKILL);
  EXPECT_EQ(said, lines{"node 1 was killed by signal 9 (SIGKILL); the job is stopped"});
  EXPECT_EQ(answers, (lines{"71: the job is being stopped", "70: the job is being stopped"}));
  EXPECT_EQ(killed, std::vector<node_id>{3});
  EXPECT_EQ(unpack_lost(sent[0].back().payload).node, 1);
  end(0, 9);
  end(2, 9);
  expect_over(137);
}

TEST_F(elastic_course, one_that_came_late_is_a_member_like_the_others) {
  open(2);
  ask_join();
  come(2);
  kill(2, SIGSEGV);
  EXPECT_EQ(said, lines{"node 2 was killed by signal 11 (SIGSEGV); the job is stopped"});
  EXPECT_EQ(unpack_lost(sent[0].back().payload).node, 2);
  EXPECT_EQ(unpack_lost(sent[1].back().payload).node, 2);
}

TEST_F(elastic_course, who_does_not_follow_node_0_is_lost_late_or_not) {
  open(2);
  ask_join();
  come(2);
  leave(1);
  leave(0);
  pass(10 * second);
  EXPECT_EQ(said, lines{"node 2 did not end within 10 s after node 0; the job is stopped"});
}

TEST_F(elastic_course, an_interrupt_ends_changes) {
  open(2);
  job->ask_leave(another, 1);
  ask_join();
  job->on_interrupt(SIGINT, now);
  EXPECT_EQ(answers, (lines{"71: the job is being stopped", "70: the job is being stopped"}));
  EXPECT_EQ(killed, std::vector<node_id>{2});
  kill(2, SIGKILL);
  kill(0, SIGINT);
  kill(1, SIGINT);
  expect_over(130);
}

TEST_F(elastic_course, time_in_which_all_were_stopped_does_not_count) {
  open(1);
  ask_join();
  now += 3600 * second;
  job->postpone(3600 * second);
  job->on_time(now);
  EXPECT_TRUE(answers.empty());
}

}  // namespace
}  // namespace launch_test
