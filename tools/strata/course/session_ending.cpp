// SPDX-License-Identifier: Apache-2.0
// How a job ends by itself: its nodes finish, node 0 ends, and the others follow.
#include <algorithm>
#include <utility>

#include "tools/strata/course/session.hpp"
#include "tools/strata/course/session_limits.hpp"
#include "tools/strata/events/event_loop.hpp"
#include "tools/strata/events/seconds.hpp"

namespace strata::launcher {

void session::on_finished(node_id node, std::int64_t now_ns) {
  node_state& n = nodes_.at(node);
  if (n.is == part::coming) {
    changes_.refuse("ended before it had joined", now_ns);
    return lose_if_missed(node, now_ns);
  }
  n.finished = true;
  if (!elastic() || phase_ != phase::running) return;
  // It may have been the last one: the others ended while it was on its way out.
  if (!changes_.on_finished(node, now_ns) || !over()) return;
  say_late_lines();
  changes_.stop("the job has ended");
}

void session::on_late_end(node_id node, std::int64_t now_ns) {
  const node_state& n = nodes_.at(node);
  const std::string how = to_text(n.how);
  if (!n.finished) {
    // Node 0 is the user's view of the program: what it had to say, it has said.
    const bool silent = node == 0 && !n.how.signalled && n.how.failed();
    const std::string why = n.how.signalled ? how : how + " before the job did";
    return lose({node}, why, silent ? "" : nodes_.name(node) + " " + why,
                n.how.failed() ? n.how.status() : 1, now_ns);
  }
  if (n.how.failed() && (node != 0 || n.how.signalled)) {
    const std::string line = nodes_.name(node) + " " + how + " after it had finished";
    // Perhaps because a node died, or is lost, of whose end we hear only now, or never.
    const bool may_follow = !n.how.signalled && n.is == part::member;
    may_follow ? say_later(line, now_ns) : actions_.say(line);
  }
  if (node != 0 && late_status_ == 0) late_status_ = n.how.status();
  if (node == 0) straggler_ns_ = now_ns + straggler_limit_ns;
}

void session::say_later(const std::string& line, std::int64_t now_ns) {
  const std::int64_t expected_ns = line_ns_ == no_deadline ? 0 : line_ns_;
  if (late_lines_.empty()) late_lines_ns_ = std::max(now_ns + settle_ns, expected_ns);
  late_lines_.push_back(line);
}

void session::say_late_lines() {
  for (const std::string& line : std::exchange(late_lines_, {})) actions_.say(line);
  late_lines_ns_ = no_deadline;
}

void session::excuse_stragglers(std::int64_t now_ns) {
  if (straggler_ns_ != no_deadline) straggler_ns_ = now_ns + straggler_limit_ns;
}

void session::look_for_stragglers(std::int64_t now_ns) {
  straggler_ns_ = no_deadline;
  const auto missing = nodes_.members_where([](const node_state& n) { return !n.finished; });
  if (!missing.empty()) {
    const std::string why =
        "did not end within " + to_seconds(straggler_limit_ns) + " after node 0";
    return lose(missing, why, nodes_.names(missing) + " " + why, 1, now_ns);
  }
  const auto slow = nodes_.members();
  if (!slow.empty()) {
    actions_.say("node 0 has ended; waiting for " + nodes_.names(slow) + " (Ctrl-C ends the wait)");
  }
}

}  // namespace strata::launcher
