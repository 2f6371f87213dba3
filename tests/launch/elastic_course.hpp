// SPDX-License-Identifier: Apache-2.0
// The course of an elastic job, in which nodes come and go, played without processes or clocks.
#pragma once
#include <vector>

#include "course.hpp"

namespace launch_test {

// Who asks for a change.
inline constexpr ticket somebody = 70, another = 71;

struct elastic_course : course {
  // `nodes` run and take part.
  void open(node_id nodes, node_id capacity = 8) {
    begin({.nodes = nodes, .program = "prog", .capacity = capacity});
    all_reach(nodes);
    sent.clear();
  }
  void word(node_id node, word_to_launcher what, node_id about) {
    job->on_frame(node, unpack(pack_word(what, about)), now);
  }
  void admit(node_id member, node_id comer) { word(member, word_to_launcher::admitted, comer); }
  void enter(node_id node) { word(node, word_to_launcher::entered, node); }
  void drained(node_id node) { word(node, word_to_launcher::drained, node); }
  void stays(node_id node) { word(node, word_to_launcher::stays, node); }
  void ask_join(ticket who = somebody, unsigned nodes = 1) { job->ask_join(who, nodes, now); }
  // One that node 0 has counted, and does not hear any more.
  void open_and_miss_a_newcomer() {
    open(1);
    ask_join();
    reach(1);
    admit(0, 1);
    miss(0, 1);
  }
  // The whole way in.
  void come(node_id node) {
    reach(node);
    for (const node_id member : job->members()) admit(member, node);
    enter(node);
  }
  using kinds = std::vector<frame_kind>;
  [[nodiscard]] kinds got(node_id node) {
    kinds all;
    for (const frame& f : sent[node]) all.push_back(f.kind);
    return all;
  }
};

}  // namespace launch_test
