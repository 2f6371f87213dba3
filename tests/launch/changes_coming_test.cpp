// SPDX-License-Identifier: Apache-2.0
// A node comes to a running job, or does not get there, and when its loss is the job's.
#include <gtest/gtest.h>

#include <csignal>

#include "elastic_course.hpp"

namespace launch_test {
namespace {

TEST_F(elastic_course, a_node_comes_and_learns_what_was_measured) {
  begin({.nodes = 2, .program = "prog", .capacity = 4});
  for (node_id n = 0; n < 2; ++n) reach_by_networks(n);
  const std::vector<closed_link> closed{{0, 1, 1}};
  for (unsigned round = 0; round < closed_rounds; ++round) {
    for (node_id n = 0; n < 2; ++n) tell_closed(n, closed);
  }
  ask_join();
  EXPECT_EQ(answers.size(), 1U) << "the job has not begun";
  answers.clear();
  const std::vector<std::vector<measured_link>> all{{{1, 0, 30, 60}}, {}};
  for (node_id n = 0; n < 2; ++n) measure(n, all[n]);
  for (const node_id comer : {2, 3}) {
    sent.clear();
    ask_join();
    reach_by_networks(comer);
    for (const node_id member : job->members()) admit(member, comer);
    EXPECT_EQ(got(comer), (kinds{frame_kind::directory, frame_kind::all_closed,
                                 frame_kind::measurements, frame_kind::ways}));
    EXPECT_EQ(unpack_closed(sent[comer][1].payload), closed);
    EXPECT_EQ(unpack_measurements(sent[comer][2].payload), all);
    // What node 0 has said last.
    EXPECT_EQ(unpack_ways(sent[comer][3].payload), comer == 2 ? "" : "by node 2");
    enter(comer);
    EXPECT_TRUE(job->is_running());
    for (const char* const plan : {"somehow", "by node 2"})
      job->on_frame(0, unpack(pack_ways(plan)), now);
  }
  // It measures nothing.
  measure(3, {});
  EXPECT_FALSE(job->is_running());
}

TEST_F(elastic_course, a_node_comes_and_learns_what_was_found) {
  begin({.nodes = 2, .program = "prog", .capacity = 4});
  for (const std::string round : {"first ", "second "}) {
    for (node_id n = 0; n < 2; ++n) find(n, round + std::to_string(n));
  }
  all_reach(2);
  for (const node_id comer : {2, 3}) {
    ask_join();
    for (const std::string round : {"first ", "second "}) {
      find(comer, "what does not count");
      EXPECT_EQ(sent[comer].back().kind, frame_kind::all_found);
      EXPECT_EQ(unpack_all_found(sent[comer].back().payload), (lines{round + "0", round + "1"}));
    }
    reach(comer);
    for (const node_id member : job->members()) admit(member, comer);
    enter(comer);
  }
  EXPECT_TRUE(job->is_running());
  find(3, "");  // once more
  EXPECT_FALSE(job->is_running());
}

TEST_F(elastic_course, a_node_that_asks_for_finds_where_there_are_none_is_refused) {
  begin({.nodes = 2, .program = "prog", .capacity = 4});
  all_reach(2);
  ask_join();
  answers.clear();
  find(2, "");
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_NE(answers[0].find("this job has found no networks"), std::string::npos) << answers[0];
  EXPECT_TRUE(job->is_running());
}

TEST_F(elastic_course, only_node_0_of_several_networks_tells_of_ways) {
  for (const node_id n : {0, 1}) {
    said.clear();
    begin({.nodes = 2, .program = "prog", .capacity = 4});
    if (n == 0) {
      all_reach(2);  // on one network
    } else {
      all_reach_by_networks(2);
      for (node_id m = 0; m < 2; ++m) measure(m, {});
    }
    EXPECT_TRUE(job->is_running());
    job->on_frame(n, unpack(pack_ways("somehow")), now);
    EXPECT_FALSE(job->is_running());
    ASSERT_EQ(said.size(), 1U);
    EXPECT_NE(said[0].find("a message comes out of turn"), std::string::npos) << said[0];
  }
  EXPECT_THROW((void)unpack_ways(std::string(plan_bytes_max + 1, 'x')), strata::error);
}

TEST_F(elastic_course, a_node_comes) {
  open(2);
  ask_join();
  ASSERT_EQ(spawned.size(), 1U);
  EXPECT_EQ(spawned[0].first, 2);
  EXPECT_TRUE(sent.empty());
  reach(2);
  for (node_id n = 0; n < 2; ++n) {
    ASSERT_EQ(got(n), kinds{frame_kind::admit});
    const admit_message message = unpack_admit(sent[n][0].payload);
    EXPECT_EQ(message.node, 2);
    EXPECT_EQ(message.host, late_host);
    EXPECT_EQ(message.where.port, 2);
  }
  admit(1, 2);
  EXPECT_TRUE(got(2).empty());
  admit(0, 2);
  ASSERT_EQ(got(2), kinds{frame_kind::directory});
  EXPECT_EQ(unpack_directory(sent[2][0].payload).size(), 3U);
  EXPECT_EQ(unpack_directory(sent[2][0].payload)[1].port, 1);
  EXPECT_TRUE(answers.empty());
  enter(2);
  EXPECT_EQ(answers, lines{"70: joined 2"});
  EXPECT_EQ(job->members(), (std::vector<node_id>{0, 1, 2}));
  EXPECT_EQ(job->deadline_ns(), no_deadline);
  for (node_id n = 0; n < 3; ++n) leave(n);
  expect_over(0);
  EXPECT_TRUE(said.empty());
}

TEST_F(elastic_course, alone_it_is_a_node_all_the_same) {
  begin({.nodes = 1, .program = "prog", .capacity = 8});
  EXPECT_NE(job->deadline_ns(), no_deadline);
  ask_join();
  EXPECT_EQ(answers, lines{"70: the job is starting"});
  reach(0);
  EXPECT_EQ(got(0), kinds{frame_kind::directory});
  EXPECT_TRUE(job->is_running());
  ask_join();
  come(1);
  EXPECT_EQ(answers.back(), "70: joined 1");
  kill(0, SIGKILL);
  EXPECT_EQ(said, lines{"node 0 was killed by signal 9 (SIGKILL); the job is stopped"});
}

TEST_F(elastic_course, another_build_is_refused) {
  open(2);
  ask_join();
  reach(2, "other");
  EXPECT_EQ(answers, lines{"70: node 2 runs another build of prog than node 0 (build ids other and "
                           "id); install the same file on every host"});
  EXPECT_EQ(killed, std::vector<node_id>{2});
  kill(2, SIGKILL);
  EXPECT_TRUE(sent.empty());
  EXPECT_TRUE(said.empty());
  EXPECT_TRUE(job->is_running());
  leave(1);
  leave(0);
  EXPECT_EQ(job->status(), 0);
}

TEST_F(elastic_course, one_that_dies_before_it_is_reachable) {
  open(2);
  ask_join();
  end(2, 3);
  EXPECT_EQ(answers, lines{"70: node 2 ended with status 3 before it had joined"});
  EXPECT_TRUE(sent.empty());
  EXPECT_TRUE(killed.empty());
  EXPECT_TRUE(job->is_running());
  ask_join();
  // Its number is not used again, and is gone.
  EXPECT_EQ(spawned[1].first, 3);
  EXPECT_EQ(spawned[1].second, std::vector<node_id>{2});
  come(3);
  EXPECT_EQ(unpack_directory(sent[3][0].payload)[2].port, 0);
  EXPECT_EQ(answers.back(), "70: joined 3");
}

TEST_F(elastic_course, one_that_dies_when_some_have_admitted_it) {
  open(2);
  ask_join();
  reach(2);
  admit(1, 2);
  kill(2, SIGSEGV);
  const std::string why = "was killed by signal 11 (SIGSEGV) before it had joined";
  EXPECT_EQ(answers, lines{"70: node 2 " + why});
  for (node_id n = 0; n < 2; ++n) {
    ASSERT_EQ(got(n), (kinds{frame_kind::admit, frame_kind::lost}));
    EXPECT_EQ(unpack_lost(sent[n][1].payload).node, 2);
    EXPECT_EQ(unpack_lost(sent[n][1].payload).why, why);
  }
  // Node 0 had not heard of that yet.
  admit(0, 2);
  EXPECT_TRUE(said.empty());
  EXPECT_TRUE(job->is_running());
}

TEST_F(elastic_course, one_whose_line_ends_or_says_nonsense) {
  open(2);
  ask_join();
  job->on_line_ended(2, "", now);
  pass(10 * second);
  EXPECT_EQ(answers, lines{"70: node 2 closed its line to the launcher before it had joined"});
  EXPECT_EQ(killed, std::vector<node_id>{2});
  ask_join();
  enter(3);
  EXPECT_EQ(answers.back().rfind("70: node 3: the line between launcher and node: ", 0), 0U);
  ask_join();
  finish(4);
  EXPECT_EQ(answers.back(), "70: node 4 ended before it had joined");
  EXPECT_EQ(killed, (std::vector<node_id>{2, 3, 4}));
  // Whatever else they say is of no interest.
  reach(3);
  finish(4);
  EXPECT_TRUE(said.empty());
  EXPECT_TRUE(job->is_running());
}

TEST_F(elastic_course, one_that_takes_too_long) {
  open(2);
  ask_join();
  pass(30 * second);
  EXPECT_EQ(answers, lines{"70: node 2 did not join within 30 s (strata run --start-limit sets the "
                           "limit)"});
  EXPECT_EQ(killed, std::vector<node_id>{2});
  ask_join();
  reach(3);
  admit(0, 3);
  pass(30 * second);
  EXPECT_EQ(answers.back(),
            "70: node 3 did not join within 30 s (strata run --start-limit sets the limit): node 1 "
            "did not let it in");
  EXPECT_EQ(got(0).back(), frame_kind::lost);
  EXPECT_TRUE(said.empty());
}

// It may be known to node 0 by then, while another member computes and does not answer it: only the
// end of its process would be a loss.
TEST_F(elastic_course, one_that_all_have_let_in_takes_as_long_as_it_takes) {
  open(2);
  ask_join();
  reach(2);
  admit(0, 2);
  admit(1, 2);
  pass(3'600 * second);
  job->postpone(second);
  EXPECT_TRUE(answers.empty());
  EXPECT_TRUE(killed.empty());
  EXPECT_EQ(got(0), kinds{frame_kind::admit});
  enter(2);
  EXPECT_EQ(answers, lines{"70: joined 2"});
}

TEST_F(elastic_course, one_that_cannot_be_started) {
  open(1);
  cannot_spawn = "no room";
  ask_join();
  EXPECT_EQ(answers, lines{"70: no room"});
  cannot_spawn.clear();
  ask_join();
  EXPECT_EQ(spawned.at(0).first, 2);
}

TEST_F(elastic_course, one_whose_host_is_lost) {
  open(1);
  ask_join();
  job->on_host_lost({1}, "host b: the connection ended", false, now);
  EXPECT_EQ(answers, lines{"70: host b: the connection ended"});
  EXPECT_TRUE(said.empty());
  EXPECT_TRUE(job->is_running());
}

TEST_F(elastic_course, one_after_the_other) {
  open(1);
  ask_join(somebody, 2);
  ask_join(another);
  EXPECT_EQ(spawned.size(), 1U);
  come(1);
  EXPECT_EQ(spawned.size(), 2U);
  come(2);
  EXPECT_EQ(spawned.size(), 3U);
  come(3);
  EXPECT_EQ(answers, (lines{"70: joined 1", "70: joined 2", "71: joined 3"}));
  EXPECT_EQ(got(2).front(), frame_kind::directory);
  EXPECT_EQ(got(1), (kinds{frame_kind::directory, frame_kind::admit, frame_kind::admit}));
}

TEST_F(elastic_course, what_was_asked_for_with_a_failure_does_not_follow_it) {
  open(1);
  ask_join(somebody, 3);
  ask_join(another);
  end(1, 1);
  EXPECT_EQ(answers.size(), 1U);
  EXPECT_EQ(spawned.size(), 2U);
  come(2);
  EXPECT_EQ(answers.back(), "71: joined 2");
}

TEST_F(elastic_course, numbers_run_out) {
  open(2, 4);
  ask_join(somebody, 3);
  EXPECT_EQ(
      answers,
      lines{"70: all but 2 of its 4 node numbers are used, and none is used twice; strata run "
            "--elastic=MAX sets how many there are"});
  ask_join(somebody, 1);
  ask_join(another, 1);
  ask_join(somebody, 1);
  EXPECT_EQ(answers.back().rfind("70: all 4 node numbers are used", 0), 0U) << answers.back();
  come(2);
  come(3);
  ask_join();
  EXPECT_EQ(answers.back().rfind("70: all 4 node numbers are used", 0), 0U) << answers.back();
}

// It may be killed when the others know it and it has not told the launcher yet.
TEST_F(elastic_course, a_newcomer_that_was_counted_already_is_a_loss) {
  open(2);
  ask_join();
  reach(2);
  admit(0, 2);
  admit(1, 2);
  kill(2, 9);
  EXPECT_EQ(job->status(), 0);
  miss(0, 2);
  EXPECT_EQ(job->status(), 137);
  ASSERT_EQ(said.size(), 1U);
  EXPECT_NE(said[0].find("node 2 was killed by signal 9 (SIGKILL) while it joined"),
            std::string::npos);
  leave(0);
  leave(1);
  expect_over(137);
}

// Node 0 may notice first.
TEST_F(elastic_course, a_newcomer_that_node_0_misses_first_is_a_loss) {
  open_and_miss_a_newcomer();
  EXPECT_TRUE(said.empty());
  kill(1, 9);
  ASSERT_EQ(said.size(), 1U);
  EXPECT_NE(said[0].find("node 1 was killed by signal 9 (SIGKILL) while it joined"),
            std::string::npos);
  leave(0);
  expect_over(137);
}

// However it then goes that it does not come.
TEST_F(elastic_course, a_newcomer_that_node_0_misses_is_a_loss_however_it_is_refused) {
  const std::string lost_with_host = "host b: the connection ended; the job is stopped";
  const std::string was_lost = "node 1 was lost while it joined; the job is stopped";
  for (const std::string how : {"finishes", "host", "nonsense"}) {
    SCOPED_TRACE(how);
    said.clear();
    open_and_miss_a_newcomer();
    if (how == "finishes") finish(1);
    if (how == "host") job->on_host_lost({1}, "host b: the connection ended", false, now);
    if (how == "nonsense") reach(1);
    EXPECT_EQ(said, lines{how == "host" ? lost_with_host : was_lost});
    EXPECT_EQ(unpack_lost(sent[0].back().payload).node, 1);
    if (how != "host") kill(1, 9);
    leave(0);
    expect_over(1);
    EXPECT_EQ(said.size(), 1U);
  }
}

TEST_F(elastic_course, a_newcomer_that_node_0_misses_is_a_loss_where_the_job_ends_meanwhile) {
  open(2);
  ask_join();
  reach(2);
  admit(0, 2);
  admit(1, 2);
  miss(0, 2);
  finish(1);
  pass(5 * second);  // less than a missed one has, and more than one that comes to a job that ends
  ASSERT_EQ(said.size(), 1U);
  EXPECT_NE(said[0].find("node 2 was lost while it joined"), std::string::npos) << said[0];
  kill(2, 9);
  leave(0);
  leave(1);
  expect_over(1);
}

TEST_F(elastic_course, a_newcomer_that_node_0_misses_is_ended) {
  open_and_miss_a_newcomer();
  pass(10 * second);
  EXPECT_EQ(killed, std::vector<node_id>{1});
  ASSERT_EQ(said.size(), 1U);
  EXPECT_NE(said[0].find("node 1 was lost while it joined"), std::string::npos);
  kill(1, 9);
  leave(0);
  expect_over(1);
}

// Its last words may be read after those of node 0.
TEST_F(elastic_course, a_newcomer_that_node_0_misses_just_when_it_is_let_in_is_a_loss) {
  for (const bool ends : {true, false}) {
    said.clear();
    open_and_miss_a_newcomer();
    enter(1);
    if (ends) kill(1, 9);
    pass(10 * second);
    ASSERT_EQ(said.size(), 1U);
    EXPECT_EQ(said[0], ends ? "node 1 was killed by signal 9 (SIGKILL); the job is stopped"
                            : "node 1 was lost while it joined; the job is stopped");
    EXPECT_EQ(unpack_lost(sent[0].back().payload).node, 1);
  }
}

// What has kept it from connecting is no loss to the others.
TEST_F(elastic_course, whom_a_newcomer_misses_is_not_lost) {
  open(2);
  ask_join();
  reach(2);
  admit(0, 2);
  admit(1, 2);
  miss(2, 1);
  leave(2, 1);
  pass(20 * second);
  EXPECT_TRUE(said.empty());
  EXPECT_TRUE(job->is_running());
}

TEST_F(elastic_course, nobody_misses_itself_or_a_node_that_never_was) {
  for (const node_id lost : {node_id{1}, node_id{9}}) {
    said.clear();
    open(2);
    miss(1, lost);
    ASSERT_EQ(said.size(), 1U);
    EXPECT_NE(said[0].find("a message comes out of turn"), std::string::npos);
  }
}

}  // namespace
}  // namespace launch_test
