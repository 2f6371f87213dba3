// SPDX-License-Identifier: Apache-2.0
// Nodes come and go while a job runs: which is asked for, which is under way, what is to be done
// next. The words between launcher and nodes are in launch/job.hpp. Like session, of which it is a
// part, it knows neither processes nor clocks.
//
// Invariant: one change at a time. Either one node comes (coming_), or one that leaves has been
// told to go and has not answered (granted), or neither. Any number may hand over their work
// meanwhile.
#pragma once
#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "launch/frame.hpp"
#include "launch/messages.hpp"
#include "tools/strata/course/job_actions.hpp"
#include "tools/strata/course/node_table.hpp"
#include "tools/strata/events/shared_names.hpp"

namespace strata::launcher {

class changes {
 public:
  struct description {
    node_id capacity = 1;  // numbers that may ever be given out
    std::string program{};
    std::int64_t limit_ns = 0;  // from the start of a node until all have let it in
  };

  changes(description what, node_table& nodes, job_actions& h);

  void open() { closed_.clear(); }  // the job runs
  void ask_join(ticket who, unsigned nodes, std::int64_t now_ns);
  void ask_leave(ticket who, node_id node);

  // Of the node that comes. These throw error for what comes out of turn.
  void on_reachable(node_id node, reachable_message message, std::int64_t now_ns);
  void on_word(node_id node, frame_kind word, node_id about, std::int64_t now_ns);
  // The node that comes will not: it "was killed", or because of what a full sentence says.
  void refuse(const std::string& what_it_did, std::int64_t now_ns);
  void refuse_because(const std::string& sentence, std::int64_t now_ns);

  // A member has finished. True: it has left as agreed; else the job ends, and these changes with
  // it, but for a node that has been let in already and may not have heard of the end.
  bool on_finished(node_id node, std::int64_t now_ns);
  // The process of one that has left.
  void on_left_ended(node_id node);
  // Nobody comes or goes any more.
  void stop(const std::string& why);

  // The newcomer whose time is over, if that is so: it is refused.
  std::optional<node_id> on_time(std::int64_t now_ns);
  void postpone(std::int64_t ns);
  [[nodiscard]] std::int64_t deadline_ns() const noexcept;

 private:
  struct join {
    ticket who;
    unsigned nodes;  // that are still to come
  };
  struct newcomer {
    enum class stage : std::uint8_t { starting, admitting, entering };
    node_id node;
    ticket who;
    std::int64_t deadline_ns;
    stage at = stage::starting;
    std::vector<node_id> told{};  // who got `admit`
    std::set<node_id> awaited{};  // those of them that have not answered
  };
  struct leave {
    enum class stage : std::uint8_t { asked, drained, granted, finished };
    node_id node;
    ticket who;
    stage at = stage::asked;
  };

  [[nodiscard]] leave* leaving(node_id node);
  [[nodiscard]] leave* leaving_at(leave::stage at);
  [[nodiscard]] bool busy();
  void begin_next(std::int64_t now_ns);
  void begin_join(std::int64_t now_ns);
  // What the members hear follows the node's name.
  void give_up(const std::string& for_asker, const std::string& for_members, std::int64_t now_ns);
  void on_admitted(node_id node, node_id about);
  void on_entered(node_id node, std::int64_t now_ns);
  void on_drained(node_id node, std::int64_t now_ns);
  void on_stays(node_id node, std::int64_t now_ns);
  void on_refuses(node_id node, std::int64_t now_ns);
  // Nothing new begins. What has been granted goes on.
  void close(const std::string& why);
  void on_late(std::int64_t now_ns);

  description what_;
  node_table& nodes_;
  job_actions& actions_;
  std::string closed_ = "the job is starting";  // why nobody may come or go; empty: open
  std::deque<join> joins_;
  std::optional<newcomer> coming_;  // then of the first of joins_
  std::vector<leave> leaves_;       // the drained ones in the order in which they will be let go
};

}  // namespace strata::launcher
