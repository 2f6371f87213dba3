// SPDX-License-Identifier: Apache-2.0
// Messages and calls between nodes, over every transport.
#include <gtest/gtest.h>

#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "command.hpp"
#include "readable_siblings.hpp"
#include "several_hosts.hpp"
#include "ways_of_jobs.hpp"

namespace {

using launch_test::command;
using launch_test::transports;
using launch_test::way;
using launch_test::words;
using strata::test::several_hosts;

class message_jobs : public launch_test::in_several_ways {};

INSTANTIATE_TEST_SUITE_P(
    ways, message_jobs,
    testing::Values(way{"one", "1", "auto"}, way{"shm_2", "2", "shm"}, way{"tcp_3", "3", "tcp"},
                    way{"udp_3", "3", "udp"},
                    way{"polling", "3", "shm", {"--strata-reception=polling"}},
                    way{"two_workers", "2", "shm", {"--strata-workers=2"}},
                    way{"small_sockets", "2", "tcp", {"--strata-socket-bytes=8K"}}),
    launch_test::name_of_param);
#if defined(STRATA_HAS_UCX)
INSTANTIATE_TEST_SUITE_P(ucx, message_jobs, testing::Values(way{"ucx_2", "2", "ucx"}),
                         launch_test::name_of_param);
#endif

TEST_P(message_jobs, call_on_named_nodes) { run("calls"); }
TEST_P(message_jobs, take_and_return_objects_in_calls) { run("object-calls"); }
TEST_P(message_jobs, take_and_return_objects_in_forks) { run("object-forks"); }
TEST_P(message_jobs, take_objects_in_tokens) { run("object-tokens"); }
TEST_P(message_jobs, fail_with_tokens_that_cannot_be_read) { run("tokens-not-read"); }
TEST_P(message_jobs, look_at_any_size_where_it_is) { run("in-place"); }
TEST_P(message_jobs, echo_any_size) { run("echoes"); }
TEST_P(message_jobs, tell_of_targets_that_have_ended) { run("ended-targets"); }
TEST_P(message_jobs, wait_for_a_slow_receiver) { run("slow-receiver"); }
TEST_P(message_jobs, keep_no_more_than_they_say) { run("kept-memory"); }
TEST_P(message_jobs, choose_one_behind_a_thousand) { run("kept-apart"); }
TEST_P(message_jobs, receive_backwards_from_thousands) { run("received-backwards"); }
TEST_P(message_jobs, give_up_what_nobody_receives) { run("given-up"); }
TEST_P(message_jobs, send_on_behind_a_cancelled_one) { run("cancelled-send"); }
TEST_P(message_jobs, wait_for_the_receiver_above_the_eager_limit_alone) { run("eager-limit"); }
TEST_P(message_jobs, have_endpoints_that_outlive_them) { run("outlives-its-runtime"); }
TEST_P(message_jobs, share_what_has_a_name) { run("names"); }
TEST_P(message_jobs, keep_the_order_among_many) { run("crowd"); }
TEST_P(message_jobs, wait_for_a_network_that_carries_less_than_there_is_room_for) {
  run("crowded-network");
}
TEST_P(message_jobs, receive_from_one_node) { run("by-node"); }
TEST_P(message_jobs, make_operations_of_groups) { run("groups"); }
TEST_P(message_jobs, tell_of_groups_that_fail) { run("group-errors"); }
TEST_P(message_jobs, stop_everywhere) { run("stops"); }
TEST_P(message_jobs, share_the_best) { run("bests"); }
TEST_P(message_jobs, compute_pi_in_a_group) { run("group-example"); }
TEST_P(message_jobs, use_registered_memory) { run("registered"); }
TEST_P(message_jobs, let_others_run_while_a_large_one_is_read) { run("large-gives-way"); }

// Each with one worker, which computes; there "polling" would hear nothing.
class message_jobs_at_work : public launch_test::in_several_ways {};
INSTANTIATE_TEST_SUITE_P(
    ways, message_jobs_at_work,
    testing::Values(way{"shm_2", "2", "shm"}, way{"tcp_3", "3", "tcp"}, way{"udp_2", "2", "udp"},
                    way{"blocking", "2", "shm", {"--strata-reception=blocking"}},
                    way{"watchdog", "2", "tcp", {"--strata-reception=watchdog"}}),
    launch_test::name_of_param);

TEST_P(message_jobs_at_work, hear_of_bests_and_stops) {
  run("bests-at-work", {"--strata-workers=1"});
}
TEST_P(message_jobs_at_work, give_those_who_want_their_room_turns) {
  run("room-in-turn", {"--strata-workers=1"});
}

TEST(message_job, takes_in_what_has_come_while_nobody_else_is_ready) {
  for (const char* what : {"taken-in", "others-go-on"}) {
    launch_test::expect_ok(launch_test::run({"-n", "2", "--workers", "1", "--transport", "shm"},
                                            {"--strata-reception=polling", what}));
  }
}

// One worker, which asks for nothing else all the time. In this order each sanitizer sees every
// reception and both transports.
class receptions : public launch_test::in_several_ways {};
INSTANTIATE_TEST_SUITE_P(
    ways, receptions,
    testing::Values(way{"adaptive_shm", "2", "shm", {"--strata-reception=adaptive"}},
                    way{"blocking_shm", "2", "shm", {"--strata-reception=blocking"}},
                    way{"polling_shm", "2", "shm", {"--strata-reception=polling"}},
                    way{"watchdog_shm", "2", "shm", {"--strata-reception=watchdog"}},
                    way{"blocking_tcp", "2", "tcp", {"--strata-reception=blocking"}},
                    way{"adaptive_tcp", "2", "tcp", {"--strata-reception=adaptive"}},
                    way{"watchdog_tcp", "2", "tcp", {"--strata-reception=watchdog"}},
                    way{"polling_tcp", "2", "tcp", {"--strata-reception=polling"}}),
    launch_test::name_of_param);

TEST_P(receptions, hear_messages_in_a_loop_of_test_or_probe) {
  run("nothing-but-looks", {"--strata-workers=1"});
}
TEST_P(receptions, hear_messages_while_it_waits_for_a_time_too) {
  run("waits-with-a-deadline", {"--strata-workers=1", "--strata-spin-us=0"});
}

class workers_with_guests : public launch_test::in_several_ways {};
INSTANTIATE_TEST_SUITE_P(ways, workers_with_guests,
                         testing::Values(way{"one_shm", "2", "shm", {"--strata-workers=1"}},
                                         way{"two_shm", "2", "shm", {"--strata-workers=2"}},
                                         way{"two_tcp", "2", "tcp", {"--strata-workers=2"}},
                                         way{"one_tcp", "2", "tcp", {"--strata-workers=1"}}),
                         launch_test::name_of_param);

TEST_P(workers_with_guests, hear_messages_while_these_come_and_go) {
  run("guests-come-and-go", {"--strata-spin-us=0"});
}

// How many large messages took which path.
struct paths_taken {
  int read = -1, in_pieces = -1;
};
paths_taken paths_of_echoes(const char* transport, const char* what) {
  command c(launch_test::run({"-n", "2", "--workers", "1", "--transport", transport},
                             {"--strata-stats", what}));
  EXPECT_EQ(c.wait(), 0) << c.err();
  const std::string err = c.err();
  const auto counted = [&](const std::string& path) {
    std::smatch number;
    EXPECT_TRUE(std::regex_search(err, number, std::regex(path + " ([0-9]+)"))) << err;
    return number.size() == 2 ? std::stoi(number[1]) : -1;
  };
  return {counted("read from their sender"), counted("in pieces")};
}

// Of the three messages of each size that come back, those above 64 KiB, and elsewhere above 16.
constexpr int large_over_shm = 9, large_over_sockets = 15;

TEST(message_job, leaves_the_bytes_with_their_sender_later_within_a_host) {
  if (!strata::test::siblings_can_be_read())
    GTEST_SKIP() << "this machine lets no process read another one's memory";
  // Up to 256 KiB both ends copy while the sender looks for messages.
  const paths_taken near = paths_of_echoes("shm", "echoes");
  EXPECT_EQ(near.read + near.in_pieces, large_over_shm);
  EXPECT_LE(near.in_pieces, 3);
  const paths_taken by_sockets = paths_of_echoes("tcp", "echoes");
  EXPECT_EQ(by_sockets.read, large_over_sockets);
  EXPECT_EQ(by_sockets.in_pieces, 0);
}

TEST(message_job, sends_pieces_where_no_process_may_read_another_one) {
  for (const auto& [transport, large] :
       {std::pair{"shm", large_over_shm}, std::pair{"tcp", large_over_sockets}}) {
    const paths_taken those = paths_of_echoes(transport, "unreadable-echoes");
    EXPECT_EQ(those.read, 0) << transport;
    EXPECT_EQ(those.in_pieces, large) << transport;
  }
}

class message_job_over : public launch_test::over_each_transport {
 protected:
  // Node 2 is killed, and of this the program tells; by itself: nobody has to be stopped, which
  // would be another line. (The first one is said where there are too few cores.)
  static void expect_told(const char* what) {
    static const std::regex one_line(
        "(.*expect no speed-up.*\n)?strata run: node 2 was killed by signal 9 \\(SIGKILL\\).*\n");
    command c(launch_test::run({"-n", "3", "--transport", GetParam()}, {what}));
    EXPECT_EQ(c.wait(), 137);
    EXPECT_EQ(c.out().substr(0, 5), "told\n") << c.out() << c.err();
    EXPECT_TRUE(std::regex_match(c.err(), one_line)) << c.err();
    EXPECT_EQ(c.processes_left(), 0);
  }
};
INSTANTIATE_TEST_SUITE_P(transports, message_job_over, testing::ValuesIn(transports),
                         launch_test::name_of_text);

TEST_P(message_job_over, counts_which_path_a_message_takes_within_a_host) {
  const auto says = [&](const char* what) {
    command c(launch_test::run({"-n", "2", "--workers", "1", "--transport", GetParam()}, {what}));
    EXPECT_EQ(c.wait(), 0) << c.err();
    return c.out();
  };
  const std::string large = std::string("by ") + GetParam() + ", large ones ";
  EXPECT_EQ(says("unreadable-paths"), large + "in pieces\nok\n");
  if (strata::test::siblings_can_be_read()) {
    EXPECT_EQ(says("paths"), large + "read\nok\n");
  }
}

TEST_P(message_job_over, tells_who_waits_of_a_lost_node) { expect_told("lost"); }
TEST_P(message_job_over, tells_who_waits_within_a_call_of_a_lost_node) {
  expect_told("lost-within");
}
TEST_P(message_job_over, tells_who_waits_for_objects_of_a_lost_node) {
  expect_told("lost-with-objects");
}
TEST_P(message_job_over, tells_who_waits_for_forks_of_a_lost_node) {
  expect_told("lost-with-forks");
}
TEST_P(message_job_over, tells_a_group_of_a_lost_node) { expect_told("group-loses-a-node"); }
// Who waits on its own node, for a lock that the killed node has.
TEST_P(message_job_over, tells_who_waits_for_a_lock_of_a_lost_node) {
  expect_told("lost-with-locks");
}

// A node on each. Which way large messages went the statistics tell.
struct road {
  const char* name;
  const char* transport;
  words settings{};
  bool moves = false;
};

class large_messages : public several_hosts, public testing::WithParamInterface<road> {
 protected:
  static words job(const char* nodes, const char* hosts, const char* what) {
    words arguments = GetParam().settings;
    arguments.insert(arguments.end(), {"--strata-stats", what});
    return launch_test::run({"-n", nodes, "--workers", "1", "--bind", "none", "--transport",
                             GetParam().transport, "--host", hosts},
                            arguments);
  }
};

INSTANTIATE_TEST_SUITE_P(sockets, large_messages,
                         testing::Values(road{"tcp", "auto"}, road{"udp", "udp"}),
                         launch_test::name_of_param);
#if defined(STRATA_HAS_UCX)
INSTANTIATE_TEST_SUITE_P(
    ucx, large_messages,
    testing::Values(road{"ucx", "ucx"}, road{"ucx_never", "ucx", {"--strata-rendezvous=never"}},
                    road{"ucx_always", "ucx", {"--strata-rendezvous=always"}, true},
                    road{"ucx_blocking",
                         "ucx",
                         {"--strata-rendezvous=always", "--strata-reception=blocking"},
                         true},
                    road{"ucx_polling",
                         "ucx",
                         {"--strata-rendezvous=always", "--strata-reception=polling"},
                         true}),
    launch_test::name_of_param);
#endif

TEST_P(large_messages, arrive_between_hosts) {
  command c(job("2", "127.0.0.2,127.0.0.3", "large"), how_);
  EXPECT_EQ(c.wait(), 0) << c.err();
  EXPECT_EQ(c.out(), "ok\n");
  ASSERT_NE(c.err().find("; large ones read from their sender 0, moved by the network "),
            std::string::npos)
      << c.err();
  EXPECT_EQ(c.err().find("moved by the network 0,") == std::string::npos, GetParam().moves)
      << c.err();
  EXPECT_EQ(c.processes_left(), 0);
}

TEST_P(large_messages, are_counted_by_their_path_between_hosts) {
  command c(job("2", "127.0.0.2,127.0.0.3", "paths"), how_);
  EXPECT_EQ(c.wait(), 0) << c.err();
  const std::string by = GetParam().transport == std::string("auto") ? "tcp" : GetParam().transport;
  EXPECT_EQ(c.out(),
            "by " + by + ", large ones " + (GetParam().moves ? "moved" : "in pieces") + "\nok\n")
      << c.err();
}

TEST_P(large_messages, use_memory_that_is_registered) {
  command c(job("2", "127.0.0.2,127.0.0.3", "registered"), how_);
  EXPECT_EQ(c.wait(), 0) << c.err();
  EXPECT_EQ(c.out(), GetParam().moves ? "with its registration\nok\n" : "ok\n") << c.err();
}

TEST_P(large_messages, end_with_a_lost_node_in_their_middle) {
  command c(job("3", "127.0.0.2,127.0.0.3,127.0.0.4", "lost-in-the-middle"), how_);
  EXPECT_NE(c.wait(), 0);
  EXPECT_EQ(c.out().substr(0, 5), "told\n") << c.out() << c.err();
  EXPECT_EQ(c.processes_left(), 0);
}

// Two nodes on each of two hosts: memory within a host, and something else between hosts, or one
// for all.
class two_by_two : public several_hosts, public testing::WithParamInterface<road> {
 protected:
  void run(const words& settings, const char* what) const {
    words arguments = settings;
    arguments.emplace_back(what);
    launch_test::expect_ok(
        launch_test::run({"-n", "4", "--workers", "1", "--bind", "none", "--transport",
                          GetParam().transport, "--host", "127.0.0.2:2,127.0.0.3:2"},
                         arguments),
        how_);
  }
};
INSTANTIATE_TEST_SUITE_P(sockets, two_by_two,
                         testing::Values(road{"tcp", "auto"}, road{"udp", "shm+udp"},
                                         road{"tcp_for_all", "tcp"}),
                         launch_test::name_of_param);
#if defined(STRATA_HAS_UCX)
INSTANTIATE_TEST_SUITE_P(ucx, two_by_two, testing::Values(road{"ucx", "shm+ucx"}),
                         launch_test::name_of_param);
#endif

TEST_P(two_by_two, wake_for_messages_from_both) {
  for (const char* reception : {"adaptive", "blocking", "polling", "watchdog"}) {
    SCOPED_TRACE(reception);
    run({"--strata-spin-us=0", std::string("--strata-reception=") + reception}, "goes-around");
  }
}
TEST_P(two_by_two, keep_the_order_among_many) { run({}, "crowd"); }
TEST_P(two_by_two, share_what_has_a_name) { run({}, "names"); }
TEST_P(two_by_two, know_who_is_nearest) { run({}, "nearest"); }

// Within a host their sender's node writes what their receiver has not read yet.
TEST(large_message, is_copied_by_both_ends_within_a_host) {
  for (const char* reception : {"--strata-reception=polling", "--strata-reception=adaptive"}) {
    command c(launch_test::run({"-n", "2", "--workers", "1", "--transport", "shm"},
                               {reception, "--strata-stats", "copied-by-both"}));
    EXPECT_EQ(c.wait(), 0) << c.err();
    EXPECT_EQ(c.out(), "ok\n");
    if (!strata::test::siblings_can_be_read())
      GTEST_SKIP() << "this machine lets no process read another one's memory";
    EXPECT_TRUE(std::regex_search(c.err(), std::regex("read from their sender [1-9]"))) << c.err();
    const std::regex some_of_them("written in part where they go [1-9]");
    EXPECT_TRUE(std::regex_search(c.err(), some_of_them)) << c.err();
  }
}

TEST(large_message, fails_with_a_node_that_is_killed_while_it_helps) {
  command c(launch_test::run({"-n", "2", "--workers", "2", "--transport", "shm"},
                             {"killed-while-it-helps"}));
  EXPECT_NE(c.wait(), 0);
  EXPECT_EQ(c.out().substr(0, 5), "told\n") << c.out() << c.err();
  EXPECT_NE(c.err().find("node 1"), std::string::npos) << c.err();
  EXPECT_EQ(c.processes_left(), 0);
}

}  // namespace
