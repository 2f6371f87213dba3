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
#include "tools/strata/host_nodes.hpp"

namespace strata::launch {

class session {
 public:
  // What a session can do.
  class hands {
   public:
    virtual void send(node_id node, const std::string& frame_bytes) = 0;
    virtual void signal_all(int number) = 0;  // to every node that still runs
    virtual void say(const std::string& line) = 0;

   protected:
    ~hands() = default;
  };

  struct description {
    node_id nodes = 1;
    std::string program{};               // as messages call it
    std::vector<std::string> on_host{};  // for each node " on NAME", or nothing
    std::int64_t start_limit_ns = 30'000'000'000;
    // The program is asked what it is, not to do anything: it ends before it joins.
    bool asks_for_help = false;
  };

  session(description what, hands& h, std::int64_t now_ns);

  void on_frame(node_id node, const frame& f, std::int64_t now_ns);
  void on_line_ended(node_id node, const std::string& why, std::int64_t now_ns);
  void on_ended(node_id node, node_end how, std::int64_t now_ns);
  // None of these runs any more; `why` says what happened to their host, in a full sentence.
  void on_host_lost(const std::vector<node_id>& nodes, const std::string& why, bool user,
                    std::int64_t now_ns);
  // A signal that has been passed on to the nodes and after which they should end.
  void on_interrupt(int number, std::int64_t now_ns);
  void on_time(std::int64_t now_ns);
  // Nothing happened for this long, because launcher and nodes were stopped.
  void postpone(std::int64_t ns);

  [[nodiscard]] std::int64_t deadline_ns() const noexcept;
  [[nodiscard]] bool over() const noexcept { return running_ == 0 || given_up_; }
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

  struct node_state {
    bool joined = false;
    bool finished = false;
    bool running = true;
    node_end how;
    std::int64_t line_limit_ns = 0;  // its line has ended: until when its process should
    address where;
    std::string build_id;
  };

  [[nodiscard]] std::string name(node_id node) const;
  [[nodiscard]] std::string names(const std::vector<node_id>& nodes) const;
  // The running nodes for which p(state) holds.
  template <class Predicate>
  [[nodiscard]] std::vector<node_id> running_where(Predicate p) const;
  [[nodiscard]] bool alone() const noexcept { return what_.nodes == 1; }

  void on_reachable(node_id node, const frame& f, std::int64_t now_ns);
  void on_early_end(node_id node, std::int64_t now_ns);
  void on_late_end(node_id node, std::int64_t now_ns);
  void end_failing(std::int64_t now_ns);
  void look_for_stragglers(std::int64_t now_ns);
  void look_for_ended_lines(std::int64_t now_ns);

  void enter(phase next, std::int64_t deadline_ns);
  // Everybody ends because of `why`; the nodes in `gone` already have, or count as such.
  void lose(const std::vector<node_id>& gone, const std::string& why, const std::string& line,
            int status, std::int64_t now_ns);
  void stop(const std::string& line, int status, std::int64_t now_ns);
  void kill(std::int64_t now_ns);

  description what_;
  hands& hands_;
  std::vector<node_state> nodes_;
  unsigned running_;
  unsigned joined_ = 0;
  phase phase_ = phase::starting;
  std::int64_t deadline_ns_;
  std::int64_t straggler_ns_;  // node 0 has ended: until when the others should
  std::int64_t line_ns_;       // the earliest line_limit_ns
  std::int64_t interrupt_ns_ = 0;
  int interrupt_ = 0;    // the user's signal
  int status_ = 0;       // of what stopped the job; 0: nothing did
  int late_status_ = 0;  // of a node that had finished, and then failed
  std::string failure_;  // phase failing: the line, unless node 0 says something itself
  bool given_up_ = false;
};

}  // namespace strata::launch
