// SPDX-License-Identifier: Apache-2.0
#include "tools/strata/hosts/hosts.hpp"

#include <gtest/gtest.h>

#include <sstream>

#include "random.hpp"
#include "strata/error.hpp"
#include "tools/strata/placement.hpp"

namespace {

using namespace strata::launch;
using namespace strata::launcher;

std::vector<host> parse(const std::string& text) {
  std::istringstream in(text);
  return parse_hostfile(in, "hosts");
}

std::string complaint(const std::string& text) {
  try {
    parse(text);
  } catch (const strata::user_error& problem) {
    return problem.what();
  }
  return "(none)";
}

TEST(hostfile, names_slots_addresses_and_comments) {
  const auto hosts = parse(
      "# our machines\n a  slots=4\n\nuser@b.example # new\nc address=10.0.0.3 "
      "slots=2\r\n");
  ASSERT_EQ(hosts.size(), 3U);
  EXPECT_EQ(hosts[0].name, "a");
  EXPECT_EQ(hosts[0].slots, 4U);
  EXPECT_EQ(hosts[1].name, "user@b.example");
  EXPECT_EQ(hosts[1].slots, 0U);
  EXPECT_EQ(hosts[2].address, "10.0.0.3");
  EXPECT_EQ(hosts[2].slots, 2U);
}

TEST(hostfile, a_name_that_comes_twice_adds_up) {
  const auto hosts = parse("a\nb slots=2\na\nb slots=3\n");
  ASSERT_EQ(hosts.size(), 2U);
  EXPECT_EQ(hosts[0].slots, 2U);
  EXPECT_EQ(hosts[1].slots, 5U);
}

TEST(hostfile, complaints_name_the_line) {
  EXPECT_EQ(complaint("a\nb slots=0\n"), "hosts:2: '0' is not a whole number from 1 to 4096");
  EXPECT_EQ(complaint("a slot=2\n"), "hosts:1: 'slot=2' is not slots=N or address=A");
  EXPECT_EQ(complaint("a b\n"), "hosts:1: 'b' is not slots=N or address=A");
  EXPECT_EQ(complaint("slots=2\n"), "hosts:1: 'slots=2' is not the name of a host");
  EXPECT_EQ(complaint("-oProxyCommand=x\n"),
            "hosts:1: '-oProxyCommand=x' is not the name of a host");
  EXPECT_EQ(complaint("a slots=2 slots=3\n"), "hosts:1: slots= comes twice");
  EXPECT_EQ(complaint("a address=1.2.3.4 slots=3 address=5.6.7.8\n"),
            "hosts:1: address= comes twice");
  EXPECT_EQ(complaint("a address=1.2.3.4\na\na address=1.2.3.4\na address=5.6.7.8\n"),
            "hosts:4: a has two addresses, 1.2.3.4 and 5.6.7.8");
  EXPECT_EQ(complaint("# nobody\n"), "the hostfile hosts names no host");
}

TEST(hostfile, any_bytes_are_hosts_or_a_complaint) {
  std::mt19937_64 random = launch_test::seeded_random();
  for (int round = 0; round < 5'000; ++round) {
    std::string text = "a slots=3\nb address=1.2.3.4\n";
    for (int changes = 0; changes < 4; ++changes) {
      text[random() % text.size()] = static_cast<char>(random());
    }
    try {
      for (const host& h : parse(text)) {
        EXPECT_FALSE(h.name.empty());
        EXPECT_NE(h.name[0], '-');
      }
    } catch (const strata::user_error&) {
    }
  }
}

TEST(host_list, names_and_slots) {
  const auto hosts = parse_host_list("a,b:3,fe80::1");
  ASSERT_EQ(hosts.size(), 3U);
  EXPECT_EQ(hosts[1].name, "b");
  EXPECT_EQ(hosts[1].slots, 3U);
  EXPECT_EQ(hosts[2].name, "fe80::1");
  for (const char* const wrong : {"", ",", "a,,b", "a:0", "a:x", "a b", "-a", "a:5000"}) {
    EXPECT_THROW(parse_host_list(wrong), strata::user_error) << wrong;
  }
}

TEST(host_list, goes_on_where_it_is_given_again) {
  std::vector<host> hosts = parse_host_list("a,b:2");
  append_hosts(hosts, parse_host_list("a,c"));
  ASSERT_EQ(hosts.size(), 3U);
  EXPECT_EQ(hosts[0].slots, 2U);
  EXPECT_EQ(hosts[1].slots, 2U);
  EXPECT_EQ(hosts[2].name, "c");
}

using places = std::vector<std::uint16_t>;

TEST(place_nodes, evenly_when_nobody_says_how_many) {
  EXPECT_EQ(place_nodes({{"a"}, {"b"}}, 4), (places{0, 0, 1, 1}));
  EXPECT_EQ(place_nodes({{"a"}, {"b"}}, 5), (places{0, 0, 0, 1, 1}));
  EXPECT_EQ(place_nodes({{"a"}, {"b"}, {"c"}}, 2), (places{0, 1}));
}

TEST(place_nodes, by_slots_when_somebody_does) {
  EXPECT_EQ(place_nodes({{"a", 3}, {"b"}}, 4), (places{0, 0, 0, 1}));
  EXPECT_EQ(place_nodes({{"a", 3}, {"b", 2}}, 2), (places{0, 0}));
  EXPECT_THROW(place_nodes({{"a", 3}, {"b"}}, 5), strata::user_error);
}

TEST(place, all_names_of_this_machine_are_one_host) {
  run_request what;
  places host_of;
  what.nodes = 3;
  what.hosts = {{"localhost"}, {"127.0.0.1"}};
  const auto alone = place(what, host_of);
  EXPECT_EQ(host_of, (places{0, 0, 0}));
  ASSERT_EQ(alone.size(), 1U);
  EXPECT_EQ(alone[0].nodes, (std::vector<node_id>{0, 1, 2}));
  what.nodes = 4;
  what.hosts = {{"localhost"}, {"127.0.0.2"}, {"127.0.0.1"}, {"127.0.0.3"}};  // two behind ssh
  const auto three = place(what, host_of);
  EXPECT_EQ(host_of, (places{0, 1, 0, 2}));
  ASSERT_EQ(three.size(), 3U);
  EXPECT_EQ(three[0].nodes, (std::vector<node_id>{0, 2}));
  EXPECT_EQ(three[1].name, "127.0.0.2");
  EXPECT_EQ(three[2].name, "127.0.0.3");
}

std::string alone_on(const host& one, bool elastic) {
  run_request what;
  places host_of;
  what.hosts = {one};
  what.elastic = elastic;
  return place(what, host_of).at(0).bind_address;
}

TEST(place, one_host_listens_where_others_may_come_from) {
  EXPECT_EQ(alone_on({"localhost"}, true), "127.0.0.1");
  EXPECT_EQ(alone_on({"localhost", 0, "127.0.0.7"}, true), "127.0.0.1");
  EXPECT_EQ(alone_on({"localhost", 0, "192.0.2.7"}, true), "192.0.2.7");
  EXPECT_EQ(alone_on({"192.0.2.7"}, true), "192.0.2.7");
  EXPECT_EQ(alone_on({"localhost", 0, "192.0.2.7"}, false), "127.0.0.1");
}

TEST(place, all_addresses_are_none_that_others_could_connect_to) {
  for (const char* const all : {"0.0.0.0", "::", "0", "::ffff:0.0.0.0"}) {
    run_request what;
    places host_of;
    what.bind_address = all;
    EXPECT_THROW(place(what, host_of), strata::user_error) << all;
    EXPECT_THROW(alone_on({"localhost", 0, all}, true), strata::user_error) << all;
    EXPECT_THROW(alone_on({all}, true), strata::user_error) << all;
    EXPECT_THROW(look_up_late(all), strata::user_error) << all;
  }
}

std::string why_not_on(const std::string& name) {
  try {
    alone_on({name}, true);
  } catch (const strata::user_error& problem) {
    return problem.what();
  }
  return {};
}

TEST(place, all_addresses_are_refused_by_the_name_that_the_user_gave_them) {
  const std::string rest = ", which stands for all addresses; give one of their host's";
  EXPECT_EQ(why_not_on("0.0.0.0"), "nodes cannot be reached at 0.0.0.0" + rest);
  EXPECT_EQ(why_not_on("0"), "nodes cannot be reached at 0 (0.0.0.0)" + rest);
}

}  // namespace
