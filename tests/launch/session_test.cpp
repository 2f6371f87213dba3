// SPDX-License-Identifier: Apache-2.0
// Courses of a job, played without processes or clocks.
#include "tools/strata/course/session.hpp"

#include <gtest/gtest.h>

#include <csignal>

#include "course.hpp"

namespace {

using namespace strata::launch;
using namespace strata::launcher;

using launch_test::course;
using launch_test::second;
using launch_test::unpack;

TEST_F(course, everybody_learns_where_all_are_and_leaves) {
  begin(3);
  reach(2);
  reach(0);
  EXPECT_TRUE(sent.empty());
  reach(1);
  for (node_id n = 0; n < 3; ++n) {
    ASSERT_EQ(sent[n].size(), 1U);
    EXPECT_EQ(sent[n][0].kind, frame_kind::directory);
    EXPECT_EQ(unpack_directory(sent[n][0].payload)[n].port, n);
  }
  for (node_id n = 0; n < 3; ++n) leave(n);
  expect_over(0);
  EXPECT_TRUE(said.empty());
}

TEST_F(course, on_several_networks_all_learn_what_all_have_measured) {
  begin(3);
  for (node_id n = 0; n < 3; ++n) reach_by_networks(n);
  for (node_id n = 0; n < 3; ++n) EXPECT_EQ(sent[n].size(), 1U) << "where all listen";
  for (unsigned round = 0; round < closed_rounds; ++round) {
    for (const node_id n : {1, 2, 0}) tell_closed(n, {});
  }
  EXPECT_FALSE(job->is_running());
  const std::vector<std::vector<measured_link>> all{{{1, 0, 30, 60}}, {}, {{0, 1, 20, 50}}};
  measure(2, all[2]);
  measure(0, all[0]);
  for (node_id n = 0; n < 3; ++n) EXPECT_EQ(sent[n].size(), 1U + closed_rounds);
  measure(1, all[1]);
  EXPECT_TRUE(job->is_running());
  for (node_id n = 0; n < 3; ++n) {
    ASSERT_EQ(sent[n].size(), 2U + closed_rounds);
    EXPECT_EQ(sent[n].back().kind, frame_kind::measurements);
    EXPECT_EQ(unpack_measurements(sent[n].back().payload), all);
    leave(n);
  }
  EXPECT_EQ(job->status(), 0);
  EXPECT_TRUE(said.empty());
}

TEST_F(course, on_several_networks_all_learn_what_is_closed) {
  begin(3);
  for (node_id n = 0; n < 3; ++n) reach_by_networks(n);
  const closed_link one{0, 1, 0}, other{1, 2, 1}, later{0, 1, 1};
  const auto expect_told = [&](const std::vector<closed_link>& all) {
    for (node_id n = 0; n < 3; ++n) {
      EXPECT_EQ(sent[n].back().kind, frame_kind::all_closed);
      EXPECT_EQ(unpack_closed(sent[n].back().payload), all);
    }
  };
  tell_closed(1, {one, other});
  tell_closed(2, {});
  for (node_id n = 0; n < 3; ++n) EXPECT_EQ(sent[n].size(), 1U) << "not all have told";
  tell_closed(0, {one});
  expect_told({one, other});
  for (const node_id n : {0, 2}) tell_closed(n, {});
  tell_closed(1, {later});
  expect_told({one, later, other});
}

TEST_F(course, what_nodes_find_of_their_networks_all_learn_before_they_join) {
  begin(3);
  for (const std::string round : {"first ", "second "}) {
    for (const node_id n : {2, 0, 1}) {
      for (node_id m = 0; m < 3; ++m) EXPECT_EQ(sent[m].size(), round == "first " ? 0U : 1U);
      find(n, round + std::to_string(n));
    }
    for (node_id n = 0; n < 3; ++n) {
      EXPECT_EQ(sent[n].back().kind, frame_kind::all_found);
      EXPECT_EQ(unpack_all_found(sent[n].back().payload),
                (lines{round + "0", round + "1", round + "2"}));
    }
  }
  all_reach(3);
  EXPECT_TRUE(job->is_running());
  for (node_id n = 0; n < 3; ++n) EXPECT_EQ(sent[n].back().kind, frame_kind::directory);
  EXPECT_TRUE(said.empty());
}

TEST_F(course, who_finds_nothing_while_others_do_is_named) {
  begin(3);
  find(0, "");
  find(2, "");
  pass(30 * second);
  ASSERT_EQ(said.size(), 1U);
  EXPECT_EQ(said[0].rfind("node 1 did not join within 30 s", 0), 0U) << said[0];
  said.clear();
  begin(2);  // with other networks
  find(0, "");
  reach(1);
  pass(30 * second);
  ASSERT_EQ(said.size(), 1U);
  EXPECT_EQ(said[0].rfind("node 1 did not join within 30 s", 0), 0U) << said[0];
}

TEST_F(course, finds_out_of_turn_end_the_job) {
  expect_refused([&] {
    find(0, "");
    find(0, "");
  });
  expect_refused([&] {
    reach(0);
    find(0, "");
  });
  expect_refused([&] {
    for (unsigned round = 0; round <= found_rounds; ++round) {
      for (node_id n = 0; n < 2 && said.empty(); ++n) find(n, "");
    }
  });
  expect_refused([&] { find(0, std::string(found_bytes_max + 1, 'x')); });
}

TEST_F(course, on_several_networks_who_tells_nothing_is_named) {
  begin(2);
  for (node_id n = 0; n < 2; ++n) reach_by_networks(n);
  tell_closed(0, {});
  pass(30 * second);
  ASSERT_EQ(said.size(), 1U);
  EXPECT_EQ(said[0].rfind("node 1 did not join within 30 s", 0), 0U) << said[0];
  said.clear();
  begin(2);
  all_reach_by_networks(2);
  measure(0, {});
  pass(30 * second);
  ASSERT_EQ(said.size(), 1U);
  EXPECT_EQ(said[0].rfind("node 1 did not join within 30 s", 0), 0U) << said[0];
}

TEST_F(course, measurements_that_nobody_asked_for_end_the_job) {
  const auto by_networks = [&] { all_reach_by_networks(2); };
  expect_refused([&] { measure(0, {}); });
  expect_refused([&] {
    reach_by_networks(0);
    measure(0, {});
  });
  expect_refused([&] {
    all_reach(2);  // on one network
    measure(0, {});
  });
  expect_refused([&] {
    for (node_id n = 0; n < 2; ++n) reach_by_networks(n);
    measure(0, {});  // before all have told of closed ones
  });
  expect_refused([&] {
    all_reach(2);  // on one network
    tell_closed(0, {});
  });
  expect_refused([&] {
    for (node_id n = 0; n < 2; ++n) reach_by_networks(n);
    tell_closed(0, {});
    tell_closed(0, {});
  });
  expect_refused([&] {
    by_networks();
    tell_closed(0, {});
  });
  expect_refused([&] {
    for (node_id n = 0; n < 2; ++n) reach_by_networks(n);
    tell_closed(0, {{0, 2, 0}});
  });
  expect_refused([&] {
    begin(3);
    for (node_id n = 0; n < 3; ++n) reach_by_networks(n);
    tell_closed(0, {{1, 2, 0}});  // of others
  });
  expect_refused([&] {
    by_networks();
    measure(0, {});
    measure(0, {});
  });
  expect_refused([&] {
    by_networks();
    measure(0, {{2, 0, 1, 1}});
  });
}

TEST_F(course, the_status_is_node_0s) {
  begin(2);
  all_reach(2);
  leave(1);
  leave(0, 3);
  EXPECT_EQ(job->status(), 3);
  EXPECT_TRUE(said.empty());
}

TEST_F(course, a_lost_node_stops_the_job_step_by_step) {
  begin(3);
  all_reach(3);
  kill(2, SIGKILL);
  EXPECT_EQ(said, lines{"node 2 was killed by signal 9 (SIGKILL); the job is stopped"});
  for (node_id n = 0; n < 2; ++n) {
    ASSERT_EQ(sent[n].size(), 2U);
    EXPECT_EQ(unpack_lost(sent[n][1].payload).node, 2);
  }
  EXPECT_EQ(sent[2].size(), 1U);
  pass(9 * second);  // for what the program has to save
  EXPECT_TRUE(signals.empty());
  pass(second);
  EXPECT_EQ(signals, numbers{SIGTERM});
  end(1, 9);
  pass(2 * second);
  EXPECT_EQ(signals, (numbers{SIGTERM, SIGKILL}));
  kill(0, SIGKILL);
  expect_over(137);
  EXPECT_EQ(said.size(), 1U);
}

TEST_F(course, leaving_without_a_word_is_being_lost) {
  begin(2);
  all_reach(2);
  end(1, 0);
  EXPECT_EQ(said, lines{"node 1 ended with status 0 before the job did; the job is stopped"});
  end(0, 9);
  EXPECT_EQ(job->status(), 1);
}

TEST_F(course, node_0_says_itself_why_it_failed) {
  begin(2);
  all_reach(2);
  end(0, 5);
  EXPECT_TRUE(said.empty());
  EXPECT_EQ(sent[1].size(), 2U);
  end(1, 9);
  EXPECT_EQ(job->status(), 5);
}

TEST_F(course, failing_after_the_end_counts) {
  begin(2);
  all_reach(2);
  leave(1, 23);
  EXPECT_TRUE(said.empty());
  leave(0);
  EXPECT_EQ(said, lines{"node 1 ended with status 23 after it had finished"});
  EXPECT_EQ(job->status(), 23);
}

TEST_F(course, failing_after_the_end_is_said_when_nothing_else_explains_it) {
  begin(3);
  all_reach(3);
  leave(1, 23);
  EXPECT_EQ(job->deadline_ns(), now + second);
  pass(second);
  const lines one{"node 1 ended with status 23 after it had finished"};
  EXPECT_EQ(said, one);
  pass(second);
  EXPECT_EQ(said, one);
}

// Which node hears first of a death, and ends because of it, is chance.
TEST_F(course, of_a_death_and_the_ends_that_follow_it_the_death_is_said) {
  begin(3);
  all_reach(3);
  leave(1, 1);
  kill(2, SIGKILL);
  leave(0, 1);
  EXPECT_EQ(said, lines{"node 2 was killed by signal 9 (SIGKILL); the job is stopped"});
  EXPECT_EQ(job->status(), 137);
}

TEST_F(course, who_does_not_join_is_named) {
  begin(5);
  reach(0);
  reach(2);
  pass(30 * second);
  EXPECT_EQ(said, lines{"nodes 1,3-4 did not join within 30 s (--start-limit sets the limit); the "
                        "job is stopped"});
  EXPECT_EQ(signals, numbers{SIGTERM});
  for (node_id n = 0; n < 5; ++n) kill(n, SIGTERM);
  EXPECT_EQ(job->status(), 1);
  EXPECT_EQ(said.size(), 1U);
}

TEST_F(course, another_build_is_named) {
  begin(3);
  reach(2, "aa");
  reach(0, "bb");
  EXPECT_EQ(said, lines{"node 2 runs another build of prog than node 0 (build ids aa and bb); "
                        "install the same file on every host; the job is stopped"});
  EXPECT_EQ(signals, numbers{SIGTERM});
}

TEST_F(course, a_program_that_dislikes_its_arguments_speaks_for_itself) {
  begin(3);
  end(1, 2);
  end(0, 2);
  end(2, 2);
  EXPECT_TRUE(job->over());
  EXPECT_TRUE(said.empty());
  EXPECT_EQ(job->status(), 2);
}

TEST_F(course, one_node_that_fails_to_start_is_named) {
  begin(3);
  end(1, 4);
  reach(0);
  reach(2);
  EXPECT_TRUE(said.empty());
  pass(second);
  EXPECT_EQ(said, lines{"node 1 ended with status 4 before it joined; the job is stopped"});
  EXPECT_EQ(signals, numbers{SIGTERM});
  kill(0, SIGTERM);
  kill(2, SIGTERM);
  EXPECT_EQ(job->status(), 4);
}

TEST_F(course, another_kind_of_program_is_recognised) {
  begin(2);
  end(0, 0);
  end(1, 0);
  EXPECT_EQ(said,
            lines{"node 0 ended before it joined: is prog a Strata program, and does it make a "
                  "strata::runtime with these arguments?"});
  EXPECT_EQ(job->status(), 1);
}

TEST_F(course, a_program_that_is_asked_for_help_need_not_join) {
  for (const int of_one : {0, 3}) {
    said.clear();
    job = std::make_unique<session>(
        session::description{.nodes = 2, .program = "prog", .asks_for_help = true}, *this, now);
    end(1, 0);
    end(0, of_one);
    EXPECT_TRUE(said.empty());
    expect_over(of_one);
  }
}

TEST_F(course, alone_it_may_be_any_program) {
  begin(1);
  EXPECT_EQ(job->deadline_ns(), no_deadline);
  end(0, 4);
  expect_over(4);
  EXPECT_TRUE(said.empty());
}

TEST_F(course, alone_and_killed) {
  begin(1);
  kill(0, SIGSEGV);
  EXPECT_EQ(said, lines{"node 0 was killed by signal 11 (SIGSEGV)"});
  EXPECT_EQ(job->status(), 139);
}

TEST_F(course, an_interrupt_is_quiet_and_has_a_limit) {
  begin(2);
  all_reach(2);
  job->on_interrupt(SIGINT, now);
  kill(1, SIGINT);
  EXPECT_TRUE(said.empty());
  EXPECT_EQ(sent[0].size(), 1U);
  pass(2 * second);
  EXPECT_EQ(said, lines{"node 0 did not end within 2 s of the signal: killed"});
  EXPECT_EQ(signals, numbers{SIGKILL});
  kill(0, SIGKILL);
  EXPECT_EQ(job->status(), 130);
}

TEST_F(course, a_second_interrupt_kills_but_an_echo_does_not) {
  begin(2);
  all_reach(2);
  job->on_interrupt(SIGINT, now);
  now += second / 100;
  job->on_interrupt(SIGINT, now);
  EXPECT_TRUE(signals.empty());
  now += second;
  job->on_interrupt(SIGINT, now);
  EXPECT_EQ(signals, numbers{SIGKILL});
}

TEST_F(course, what_node_0_makes_of_a_signal_is_the_status) {
  begin(2);
  all_reach(2);
  job->on_interrupt(SIGTERM, now);
  end(0, 40);
  kill(1, SIGTERM);
  EXPECT_EQ(job->status(), 40);
}

TEST_F(course, a_line_that_ends_before_its_process) {
  begin(2);
  all_reach(2);
  job->on_line_ended(1, "", now);
  pass(9 * second);
  EXPECT_TRUE(said.empty());
  pass(second);
  EXPECT_EQ(said, lines{"node 1 closed its line to the launcher; the job is stopped"});
  EXPECT_EQ(sent[0].size(), 2U);
}

// The kernel takes its time for what a killed process leaves.
TEST_F(course, a_process_that_ends_long_after_its_line_is_told_as_it_ends) {
  begin(2);
  all_reach(2);
  job->on_line_ended(1, "", now);
  pass(6 * second);
  kill(1, SIGKILL);
  EXPECT_EQ(said, lines{"node 1 was killed by signal 9 (SIGKILL); the job is stopped"});
  EXPECT_EQ(job->status(), 137);
}

// It is stopped, say: its process does not end, and neither need those of the others.
TEST_F(course, a_node_that_others_have_lost_is_stopped_when_it_does_not_end) {
  begin(3);
  all_reach(3);
  miss(1, 2, "silent for\n30000 ms");
  miss(0, 2);
  miss(2, 1);  // it has heard as little
  pass(9 * second);
  EXPECT_TRUE(said.empty());
  pass(second);
  EXPECT_EQ(said, lines{"node 2 is lost: silent for 30000 ms; the job is stopped"});
  EXPECT_EQ(sent[0].back().kind, frame_kind::lost);
  EXPECT_TRUE(signals.empty());
  pass(10 * second);  // node 0 may have something to save
  EXPECT_EQ(signals, numbers{SIGTERM});
  pass(2 * second);
  EXPECT_EQ(signals, (numbers{SIGTERM, SIGKILL}));
  for (node_id n = 0; n < 3; ++n) kill(n, SIGKILL);
  expect_over(1);
}

TEST_F(course, a_node_0_that_others_have_lost_is_named_though_these_have_ended) {
  begin(2);
  all_reach(2);
  miss(1, 0);
  leave(1, 1);
  pass(9 * second);
  EXPECT_TRUE(said.empty());
  pass(second);
  EXPECT_EQ(said, lines{"node 0 is lost: silent; the job is stopped"});
  pass(2 * second);
  EXPECT_EQ(signals, numbers{SIGTERM});
  kill(0, SIGKILL);
  expect_over(1);
  EXPECT_EQ(said.size(), 1U);
}

// Two have lost each other, and the one that was named first ends for that.
TEST_F(course, a_node_0_that_goes_on_is_lost_though_another_was_missed_first) {
  begin(2);
  all_reach(2);
  miss(0, 1);
  miss(1, 0);
  leave(1, 1);
  pass(9 * second);
  EXPECT_TRUE(said.empty());
  pass(second);
  EXPECT_EQ(said, lines{"node 0 is lost: silent; the job is stopped"});
}

TEST_F(course, a_node_that_others_have_lost_and_that_dies_is_told_as_it_ends) {
  begin(3);
  all_reach(3);
  miss(1, 2);
  kill(2, SIGKILL);
  EXPECT_EQ(said, lines{"node 2 was killed by signal 9 (SIGKILL); the job is stopped"});
  leave(0, 1);
  leave(1, 1);
  EXPECT_EQ(job->status(), 137);
}

// It went on, after all: the others' end is told.
TEST_F(course, a_node_that_others_have_lost_may_finish) {
  begin(2);
  all_reach(2);
  miss(1, 0);
  leave(1, 1);
  leave(0);
  EXPECT_EQ(said, lines{"node 1 ended with status 1 after it had finished"});
  EXPECT_EQ(job->status(), 1);
}

TEST_F(course, a_line_that_ends_while_others_are_awaited) {
  begin(2);
  reach(1);
  job->on_line_ended(1, "", now);
  pass(10 * second);
  EXPECT_EQ(said, lines{"node 1 closed its line to the launcher; the job is stopped"});
  EXPECT_EQ(signals, numbers{SIGTERM});
}

TEST_F(course, nonsense_on_a_line_stops_the_job) {
  begin(2);
  all_reach(2);
  job->on_frame(1, {frame_kind::reachable, "x"}, now);
  ASSERT_EQ(said.size(), 1U);
  EXPECT_EQ(said[0].rfind("node 1: the line between launcher and node: ", 0), 0U) << said[0];
  EXPECT_EQ(signals, numbers{SIGTERM});
}

TEST_F(course, who_does_not_follow_node_0_is_lost) {
  begin(3);
  all_reach(3);
  leave(0);
  leave(1);
  pass(10 * second);
  EXPECT_EQ(said, lines{"node 2 did not end within 10 s after node 0; the job is stopped"});
  pass(2 * second);
  EXPECT_EQ(signals, numbers{SIGTERM});
  kill(2, SIGTERM);
  EXPECT_EQ(job->status(), 1);
}

TEST_F(course, who_waits_with_its_output_need_not_follow_node_0) {
  begin(2);
  all_reach(2);
  leave(0);
  for (int i = 0; i < 3; ++i) {
    now += 9 * second;
    job->excuse_stragglers(now);
    job->on_time(now);
  }
  EXPECT_EQ(said, lines());
  pass(10 * second);
  EXPECT_EQ(said, lines{"node 1 did not end within 10 s after node 0; the job is stopped"});
}

TEST_F(course, who_has_finished_may_take_its_time) {
  begin(2);
  all_reach(2);
  finish(1);
  leave(0);
  pass(10 * second);
  EXPECT_EQ(said, lines{"node 0 has ended; waiting for node 1 (Ctrl-C ends the wait)"});
  EXPECT_EQ(job->deadline_ns(), no_deadline);
  end(1, 0);
  EXPECT_EQ(job->status(), 0);
}

TEST_F(course, a_host_that_is_lost_takes_its_nodes_along) {
  begin(3);
  all_reach(3);
  job->on_host_lost({1, 2}, "host b: the connection ended", false, now);
  EXPECT_EQ(said, lines{"host b: the connection ended; the job is stopped"});
  ASSERT_EQ(sent[0].size(), 3U);
  EXPECT_EQ(unpack_lost(sent[0][2].payload).node, 2);
  EXPECT_FALSE(job->over());
  end(0, 9);
  expect_over(1);
}

TEST_F(course, what_cannot_be_killed_is_given_up) {
  begin(2);
  all_reach(2);
  kill(1, SIGSEGV);
  pass(10 * second);
  pass(2 * second);
  pass(5 * second);
  EXPECT_TRUE(job->over());
  EXPECT_EQ(said.back(), "cannot end node 0; look for leftover processes");
  EXPECT_EQ(job->status(), 139);
}

TEST_F(course, time_in_which_all_were_stopped_does_not_count) {
  begin(2);
  now += 3600 * second;
  job->postpone(3600 * second);
  job->on_time(now);
  EXPECT_TRUE(said.empty());
}

}  // namespace
