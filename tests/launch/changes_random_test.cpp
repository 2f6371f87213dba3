// SPDX-License-Identifier: Apache-2.0
// Elastic jobs at random: nodes that do as they should, at any time and in any order, and newcomers
// that fail at any point. Whatever happens, nothing is taken for nonsense, everybody who asked gets
// an answer, a member that has admitted a node hears what became of it, and the job ends well.
#include <gtest/gtest.h>

#include <deque>
#include <set>

#include "../common/sampled.hpp"
#include "course.hpp"
#include "random.hpp"

namespace {

using namespace strata::launch;
using namespace strata::launcher;
using launch_test::second;

struct random_course : launch_test::course {
  struct actor {
    bool ended = false, leaving = false, finished = false;
    std::deque<std::string> words{};  // on their way to the launcher
    std::size_t heard = 0;            // of sent[node]
  };
  std::uint64_t below(std::uint64_t bound) { return random() % bound; }
  actor& at(node_id node) {
    if (actors.size() <= node) actors.resize(node + 1U);
    return actors[node];
  }

  // What a node makes of what it hears.
  void hear(node_id node) {
    actor& a = at(node);
    const std::vector<frame>& all = sent[node];
    while (a.heard < all.size()) {
      const frame& f = all[a.heard++];
      if (f.kind == frame_kind::admit) {
        const node_id comer = unpack_admit(f.payload).node;
        admitted[node].insert(comer);
        a.words.push_back(pack_word(word_to_launcher::admitted, comer));
      } else if (f.kind == frame_kind::lost) {
        EXPECT_EQ(admitted[node].erase(unpack_lost(f.payload).node), 1U);
      } else if (f.kind == frame_kind::directory && node >= first_nodes) {
        // A newcomer may fail when it knows everybody.
        if (below(8) == 0) {
          fail(node);
        } else {
          a.words.push_back(pack_word(word_to_launcher::entered, node));
        }
      } else if (f.kind == frame_kind::leave) {
        a.leaving = true;
        a.words.push_back(pack_word(word_to_launcher::drained, node));
      } else if (f.kind == frame_kind::go && a.leaving && !a.finished) {
        if (below(3) == 0) {
          a.words.push_back(pack_word(word_to_launcher::stays, node));
          a.words.push_back(pack_word(word_to_launcher::drained, node));
        } else {
          finish_later(node);
        }
      }
    }
  }
  void finish_later(node_id node) {
    actor& a = at(node);
    if (std::exchange(a.finished, true)) return;
    a.words.push_back(pack_finished());
  }
  void fail(node_id node) {
    at(node).ended = true;
    job->on_ended(node, {true, 11}, now);
  }
  // The next thing that happens to a node, if anything can.
  void step(node_id node) {
    actor& a = at(node);
    if (a.ended) return;
    hear(node);
    if (a.ended) return;
    if (!a.words.empty()) {
      const std::string word = a.words.front();
      a.words.pop_front();
      job->on_frame(node, launch_test::unpack(word), now);
    } else if (a.finished) {
      a.ended = true;
      job->on_ended(node, {false, 0}, now);
    }
  }
  late_place spawn(node_id node, ticket who, const std::vector<node_id>& gone) override {
    if (below(10) == 0) throw strata::error("cannot");
    actor& a = at(node);
    for (unsigned told = 0; finds && told < found_rounds; ++told) a.words.push_back(pack_found({}));
    if (below(8) != 0) {
      a.words.push_back(pack_reachable({"id", {"h", node}}));
    } else {
      unreachable = node;
    }
    return course::spawn(node, who, gone);
  }
  void end(node_id node) override {
    course::end(node);
    dying.push_back(node);
  }

  std::mt19937_64 random;
  node_id first_nodes = 0;
  bool finds = false;       // what its networks are
  node_id unreachable = 0;  // a newcomer that will not get so far
  std::deque<actor> actors;
  std::vector<node_id> dying;
  std::map<node_id, std::set<node_id>> admitted;
  std::map<ticket, std::size_t> tickets;  // answers that are still to come
};

TEST_F(random_course, everybody_gets_an_answer_and_the_job_ends_well) {
  random = launch_test::seeded_random();
  for (int round = 0; round < strata::test::sampled(3000, 1000); ++round) {
    actors.clear();
    dying.clear();
    admitted.clear();
    tickets.clear();
    answers.clear();
    sent.clear();
    unreachable = 0;
    first_nodes = static_cast<node_id>(1 + below(4));
    at(first_nodes);
    begin({.nodes = first_nodes, .program = "prog", .capacity = 12});
    finds = below(2) == 0;
    for (unsigned told = 0; finds && told < found_rounds; ++told) {
      for (node_id n = 0; n < first_nodes; ++n) find(n, {});
    }
    all_reach(first_nodes);
    ticket next = 1;
    std::uint64_t steps_left = 10 + below(200);
    bool ending = false;
    while (!job->over()) {
      const std::uint64_t what = below(20);
      if (what == 0 && !ending) {
        const unsigned nodes = static_cast<unsigned>(1 + below(3));
        tickets[next] = nodes;
        job->ask_join(next++, nodes, now);
      } else if (what == 1 && !ending) {
        tickets[next] = 1;
        job->ask_leave(next++, static_cast<node_id>(below(8)));
      } else if (what == 2 && !dying.empty()) {
        const node_id node = dying.back();
        dying.pop_back();
        if (!at(node).ended) fail(node);
      } else if (what == 3 && unreachable != 0) {
        const node_id node = std::exchange(unreachable, node_id{0});
        if (!at(node).ended) fail(node);
      } else {
        const auto node = static_cast<node_id>(below(actors.size()));
        step(node);
      }
      now += second / 1000;
      job->on_time(now);
      if (steps_left > 0) --steps_left;
      // Node 0 is done; the others hear of that among themselves, newcomers that are in too.
      if (steps_left == 0) {
        ending = true;
        for (const node_id node : job->members()) {
          if (below(4) == 0) finish_later(node);
        }
      }
    }
    EXPECT_EQ(job->status(), 0);
    ASSERT_TRUE(said.empty()) << said.front();
    for (const std::string& line : answers) {
      const ticket who = std::stoull(line);
      ASSERT_TRUE(tickets.contains(who)) << line;
      ASSERT_GT(tickets[who], 0U) << line;
      const bool done = line.find(": joined ") != std::string::npos;
      tickets[who] = done ? tickets[who] - 1 : 0;
    }
    for (const auto& [who, wanted] : tickets) ASSERT_EQ(wanted, 0U) << who;
    if (testing::Test::HasFailure()) FAIL() << "round " << round;
  }
}

}  // namespace
