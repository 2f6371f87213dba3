// SPDX-License-Identifier: Apache-2.0
// The course of a job: who has joined, who has left, what is to be done about it, and with which
// status it ends. Knows neither processes nor clocks: it is told what happens and when, and says
// what to do, so tests play any course through it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "launch/frame.hpp"
#include "launch/job.hpp"
#include "tools/strata/course/changes.hpp"
#include "tools/strata/course/job_actions.hpp"
#include "tools/strata/course/node_table.hpp"
#include "tools/strata/events/shared_names.hpp"
#include "tools/strata/nodes/host_nodes.hpp"

namespace strata::launcher {

class session {
 public:
  struct description {
    node_id nodes = 1;
    std::string program{};               // as messages call it
    std::vector<std::string> on_host{};  // for each node " on NAME", or nothing
    std::int64_t start_limit_ns = 30'000'000'000;
    // The program is asked what it is, not to do anything: it ends before it joins.
    bool asks_for_help = false;
    // Nodes may come and go until so many numbers have been given out; 0: they may not.
    node_id capacity = 0;
  };

  session(description what, job_actions& h, std::int64_t now_ns);

  void on_frame(node_id node, const frame& f, std::int64_t now_ns);
  void on_line_ended(node_id node, const std::string& why, std::int64_t now_ns);
  void on_ended(node_id node, node_end how, std::int64_t now_ns);
  // None of these runs any more; `why` says what happened to their host, in a full sentence.
  void on_host_lost(const std::vector<node_id>& nodes, const std::string& why, bool user,
                    std::int64_t now_ns);
  // A signal that has been passed on to the nodes and after which they should end.
  void on_interrupt(int number, std::int64_t now_ns);
  // Nodes have to wait with their output, and perhaps with their end.
  void excuse_stragglers(std::int64_t now_ns);
  // Of an elastic job: somebody asks for nodes to come, or for one to leave.
  void ask_join(ticket who, unsigned nodes, std::int64_t now_ns);
  void ask_leave(ticket who, node_id node);
  void on_time(std::int64_t now_ns);
  // Nothing happened for this long, because launcher and nodes were stopped.
  void postpone(std::int64_t ns);

  [[nodiscard]] std::int64_t deadline_ns() const noexcept;
  // All have joined, and nothing has gone wrong.
  [[nodiscard]] bool is_running() const noexcept { return phase_ == phase::running; }
  [[nodiscard]] std::vector<node_id> members() const { return nodes_.members(); }
  // Those that have left, or never came, are not waited for.
  [[nodiscard]] bool over() const { return given_up_ || nodes_.members().empty(); }
  [[nodiscard]] int status() const noexcept;

 private:
  enum class phase : std::uint8_t {
    starting,  // not all have joined
    running,
    failing,      // a node ended before it joined; perhaps node 0 does too, and says why itself
    told,         // the others know of a loss and may end by themselves
    interrupted,  // the user asked the nodes to end
    terminating,  // SIGTERM
    killing,      // SIGKILL
  };

  // Nobody waits for such a node; it may be any program.
  [[nodiscard]] bool alone() const noexcept { return what_.nodes == 1 && !elastic(); }
  [[nodiscard]] bool elastic() const noexcept { return what_.capacity != 0; }

  // session_starting.cpp
  void on_reachable(node_id node, const frame& f, std::int64_t now_ns);
  void on_found(node_id node, const frame& f);
  void on_closed(node_id node, const frame& f);
  void on_measured(node_id node, const frame& f);
  void on_ways(node_id node, const frame& f);
  void tell_all(const std::string& frame_bytes, bool job_begins);
  [[nodiscard]] std::vector<node_id> awaited() const;
  void on_early_end(node_id node, std::int64_t now_ns);
  void end_failing(std::int64_t now_ns);

  // session_ending.cpp
  void on_finished(node_id node, std::int64_t now_ns);
  void on_late_end(node_id node, std::int64_t now_ns);
  void say_later(const std::string& line, std::int64_t now_ns);
  void say_late_lines();
  void look_for_stragglers(std::int64_t now_ns);

  // session_losses.cpp
  void on_missed(node_id node, const lost_message& lost, std::int64_t now_ns);
  void lose_newcomer(node_id node, std::int64_t now_ns);
  // It has just been refused: a loss, if node 0 had counted it and misses it.
  void lose_if_missed(node_id node, std::int64_t now_ns);
  void expect_end(node_state& n, std::int64_t now_ns);
  void look_for_ended_lines(std::int64_t now_ns);
  // Everybody ends because of `why`; the nodes in `gone` already have, or count as such.
  void lose(const std::vector<node_id>& gone, const std::string& why, const std::string& line,
            int status, std::int64_t now_ns);

  void on_word(node_id node, const frame& f, std::int64_t now_ns);
  void enter(phase next, std::int64_t deadline_ns);
  void stop(const std::string& line, int status, std::int64_t now_ns);
  void kill(std::int64_t now_ns);

  description what_;
  job_actions& actions_;
  node_table nodes_;
  changes changes_;
  unsigned joined_ = 0;
  bool measuring_ = false;    // all know where all listen, and measure the networks between them
  unsigned closed_told_ = 0;  // so often all have told of closed ones before
  phase phase_ = phase::starting;
  std::int64_t deadline_ns_;
  std::int64_t straggler_ns_;              // node 0 has ended: until when the others should
  std::int64_t line_ns_;                   // the earliest line_limit_ns
  unsigned missed_ = 0;                    // so many nodes have been
  std::vector<std::string> late_lines_{};  // of nodes that failed when they had finished
  std::int64_t late_lines_ns_;             // when they are said
  std::int64_t interrupt_ns_ = 0;
  int interrupt_ = 0;    // the user's signal
  int status_ = 0;       // of what stopped the job; 0: nothing did
  int late_status_ = 0;  // of a node that had finished, and then failed
  std::string failure_;  // phase failing: the line, unless node 0 says something itself
  bool given_up_ = false;
};

}  // namespace strata::launcher
