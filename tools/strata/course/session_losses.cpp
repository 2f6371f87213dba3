// SPDX-License-Identifier: Apache-2.0
// Nodes that are lost: who says so, for how long their end is awaited, and what the others are
// told.
#include <algorithm>
#include <optional>

#include "base/one_line.hpp"
#include "launch/messages.hpp"
#include "tools/strata/course/session.hpp"
#include "tools/strata/course/session_limits.hpp"
#include "tools/strata/events/event_loop.hpp"
#include "tools/strata/events/shared_names.hpp"

namespace strata::launcher {

void session::lose(const std::vector<node_id>& gone, const std::string& why,
                   const std::string& line, int status, std::int64_t now_ns) {
  late_lines_.clear();  // that is why
  if (!line.empty()) actions_.say(line + job_is_stopped);
  status_ = status;
  for (const node_id node : gone) {
    const std::string message = pack_lost({node, why});
    for (const node_id other : nodes_.members()) {
      if (std::find(gone.begin(), gone.end(), other) == gone.end()) actions_.send(other, message);
    }
  }
  // Node 0 is the program, and may have something to save, unless it does not even answer.
  const node_state& first = nodes_.at(0);
  const bool answers = first.missed == 0 || std::find(gone.begin(), gone.end(), 0) == gone.end();
  const bool program_goes_on = first.running && answers;
  enter(phase::told, now_ns + (program_goes_on ? own_end_ns : grace_ns));
}

// A newcomer that ended before it could say that all know it had part in the job if others knew it:
// node 0 is the first to.
void session::on_missed(node_id node, const lost_message& lost, std::int64_t now_ns) {
  if (lost.node == node || lost.node >= nodes_.size()) refuse_frame("a message comes out of turn");
  if (phase_ != phase::running) return;
  // A newcomer that loses somebody ends, and the job goes on.
  if (nodes_.at(node).is == part::coming) return;
  nodes_.at(node).has_lost = true;
  node_state& n = nodes_.at(lost.node);
  if (n.is == part::refused) return lose_newcomer(lost.node, now_ns);
  if (!n.running || n.finished || n.is == part::left || n.missed != 0) return;
  // How the process ends says more. But it may be stopped, or wait for what never comes. Two may
  // have lost each other: who is missed first is named, but either of them may go on for ever.
  n.missed = ++missed_;
  if (n.is == part::member) n.why = "is lost: " + one_line(lost.why);
  expect_end(n, now_ns);
}

void session::lose_newcomer(node_id node, std::int64_t now_ns) {
  const node_state& n = nodes_.at(node);
  const std::string why = (n.running ? "was lost" : to_text(n.how)) + " while it joined";
  lose({node}, why, nodes_.name(node) + " " + why, n.how.failed() ? n.how.status() : 1, now_ns);
}

void session::lose_if_missed(node_id node, std::int64_t now_ns) {
  if (nodes_.at(node).missed != 0) lose_newcomer(node, now_ns);
}

void session::on_line_ended(node_id node, const std::string& why, std::int64_t now_ns) {
  if (phase_ != phase::starting && phase_ != phase::running) return;
  node_state& n = nodes_.at(node);
  if (!n.running || n.is == part::refused || n.is == part::left) return;
  if (!why.empty() && n.is == part::coming) {
    changes_.refuse_because(nodes_.name(node) + ": " + why, now_ns);
    return lose_if_missed(node, now_ns);
  }
  if (!why.empty()) return stop(nodes_.name(node) + ": " + why + job_is_stopped, 1, now_ns);
  // How the process ends says more; often it just has.
  if (alone() || (!n.joined && n.is == part::member) || n.finished) return;
  expect_end(n, now_ns);
}

void session::expect_end(node_state& n, std::int64_t now_ns) {
  n.line_limit_ns = std::min(n.line_limit_ns, now_ns + line_grace_ns);
  line_ns_ = std::min(line_ns_, n.line_limit_ns);
}

void session::on_host_lost(const std::vector<node_id>& nodes, const std::string& why, bool user,
                           std::int64_t now_ns) {
  bool any = false;
  std::vector<node_id> gone;
  for (const node_id node : nodes) {
    node_state& n = nodes_.at(node);
    if (!n.running) continue;
    n.running = false;
    const bool counted = n.is == part::member || (n.is == part::coming && n.missed != 0);
    if (n.is == part::coming) changes_.refuse_because(why, now_ns);
    // With the other nodes it is done, as far as anybody will ever know.
    if (n.is == part::left) changes_.on_left_ended(node);
    if (!counted) continue;
    n.how = {false, 1};
    any = true;
    if (!n.finished) gone.push_back(node);
  }
  if (!any) return;
  if (phase_ == phase::starting || phase_ == phase::failing) {
    stop(why + job_is_stopped, user ? 2 : 1, now_ns);
  } else if (phase_ == phase::running && !gone.empty()) {
    lose(gone, why, why, 1, now_ns);
  } else if (phase_ == phase::running) {
    actions_.say(why);
    late_status_ = 1;
    if (over()) say_late_lines();
  }
}

void session::look_for_ended_lines(std::int64_t now_ns) {
  line_ns_ = no_deadline;
  std::vector<node_id> silent;
  std::optional<node_id> missed;  // the first
  for (node_id node = 0; node < nodes_.size(); ++node) {
    const node_state& n = nodes_.at(node);
    if (!n.running || n.finished || n.is == part::refused) continue;
    if (n.line_limit_ns > now_ns) {
      line_ns_ = std::min(line_ns_, n.line_limit_ns);
    } else if (n.is == part::coming) {
      changes_.refuse("closed its line to the launcher before it had joined", now_ns);
      if (nodes_.at(node).missed != 0) return lose_newcomer(node, now_ns);
    } else if (n.missed == 0) {
      silent.push_back(node);
    } else if (!missed || n.missed < nodes_.at(*missed).missed) {
      missed = node;
    }
  }
  if (missed) {
    const std::string& why = nodes_.at(*missed).why;
    if (why.empty()) return lose_newcomer(*missed, now_ns);  // it has told of itself since then
    return lose({*missed}, why, nodes_.name(*missed) + " " + why, 1, now_ns);
  }
  if (silent.empty()) return;
  const std::string why = "closed its line to the launcher";
  const std::string line = nodes_.names(silent) + " " + why;
  if (phase_ == phase::starting) return stop(line + job_is_stopped, 1, now_ns);
  lose(silent, why, line, 1, now_ns);
}

}  // namespace strata::launcher
