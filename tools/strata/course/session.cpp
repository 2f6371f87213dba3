// SPDX-License-Identifier: Apache-2.0
// The phases of a job: what leads from one to the next, and with which status the last one ends.
#include "tools/strata/course/session.hpp"

#include <algorithm>
#include <csignal>
#include <utility>

#include "launch/messages.hpp"
#include "strata/error.hpp"
#include "tools/strata/course/session_limits.hpp"
#include "tools/strata/events/event_loop.hpp"
#include "tools/strata/events/seconds.hpp"
#include "tools/strata/events/shared_names.hpp"

namespace strata::launcher {

session::session(description what, job_actions& h, std::int64_t now_ns)
    : what_(std::move(what)),
      actions_(h),
      nodes_(what_.nodes),
      changes_({what_.capacity, what_.program, what_.start_limit_ns}, nodes_, h),
      deadline_ns_(alone() ? no_deadline : now_ns + what_.start_limit_ns),
      straggler_ns_(no_deadline),
      line_ns_(no_deadline),
      late_lines_ns_(no_deadline) {
  for (node_id node = 0; node < what_.on_host.size(); ++node) {
    nodes_.at(node).on_host = what_.on_host[node];
  }
}

void session::enter(phase next, std::int64_t deadline_ns) {
  phase_ = next;
  deadline_ns_ = deadline_ns;
  if (next == phase::running) return changes_.open();
  say_late_lines();
  line_ns_ = straggler_ns_ = no_deadline;
  changes_.stop("the job is being stopped");
}

void session::stop(const std::string& line, int status, std::int64_t now_ns) {
  actions_.say(line);
  status_ = status;
  enter(phase::terminating, now_ns + grace_ns);
  if (!over()) actions_.signal_all(SIGTERM);
}

void session::kill(std::int64_t now_ns) {
  actions_.signal_all(SIGKILL);
  enter(phase::killing, now_ns + give_up_ns);
}

void session::on_frame(node_id node, const frame& f, std::int64_t now_ns) {
  const node_state& n = nodes_.at(node);
  if (n.is == part::refused || n.is == part::left) return;
  try {
    switch (f.kind) {
      case frame_kind::reachable:
        return n.is == part::coming
                   ? changes_.on_reachable(node, unpack_reachable(f.payload), now_ns)
                   : on_reachable(node, f, now_ns);
      case frame_kind::found:
        return on_found(node, f);
      case frame_kind::closed:
        return on_closed(node, f);
      case frame_kind::measured:
        return on_measured(node, f);
      case frame_kind::ways:
        return on_ways(node, f);
      case frame_kind::finished:
        return on_finished(node, now_ns);
      case frame_kind::admitted:
      case frame_kind::entered:
      case frame_kind::drained:
      case frame_kind::stays:
      case frame_kind::refuses:
        return on_word(node, f, now_ns);
      case frame_kind::missed:
        return on_missed(node, unpack_lost(f.payload), now_ns);
      default:
        refuse_frame("a message comes out of turn");
    }
  } catch (const error& problem) {
    on_line_ended(node, problem.what(), now_ns);
  }
}

void session::on_word(node_id node, const frame& f, std::int64_t now_ns) {
  const node_id about = unpack_node(f.payload);
  if (!elastic()) refuse_frame("a message comes out of turn");
  // What was said before it was known that the job stops is of no interest.
  if (phase_ != phase::running) return;
  changes_.on_word(node, f.kind, about, now_ns);
}

void session::ask_join(ticket who, unsigned nodes, std::int64_t now_ns) {
  changes_.ask_join(who, nodes, now_ns);
}

void session::ask_leave(ticket who, node_id node) { changes_.ask_leave(who, node); }

void session::on_ended(node_id node, node_end how, std::int64_t now_ns) {
  node_state& n = nodes_.at(node);
  if (!n.running) return;
  n.running = false;
  n.how = how;
  switch (n.is) {
    case part::refused:
      return;
    case part::coming:
      changes_.refuse(to_text(how) + " before it had joined", now_ns);
      lose_if_missed(node, now_ns);
      return;
    case part::left:
      if (phase_ == phase::running) on_late_end(node, now_ns);
      return changes_.on_left_ended(node);
    case part::member:
      break;
  }
  if (alone()) {
    const bool unasked = phase_ == phase::starting || phase_ == phase::running;
    if (how.signalled && unasked) actions_.say(nodes_.name(node) + " " + to_text(how));
    return;
  }
  if (phase_ == phase::starting) {
    on_early_end(node, now_ns);
  } else if (phase_ == phase::running) {
    on_late_end(node, now_ns);
  }
  if (!over()) return;
  say_late_lines();
  if (phase_ == phase::failing) end_failing(now_ns);
  changes_.stop("the job has ended");
}

void session::on_interrupt(int number, std::int64_t now_ns) {
  const bool again = interrupt_ != 0;
  if (again && now_ns - interrupt_ns_ < same_request_ns) return;
  const bool stopping = phase_ == phase::told || phase_ == phase::terminating;
  if (!again) {
    interrupt_ = number;
    interrupt_ns_ = now_ns;
  }
  if (again || stopping) {
    if (phase_ != phase::killing) kill(now_ns);
  } else if (phase_ != phase::killing) {
    enter(phase::interrupted, now_ns + grace_ns);
  }
}

void session::on_time(std::int64_t now_ns) {
  if (over()) return;
  if (phase_ == phase::starting || phase_ == phase::running) {
    if (now_ns >= line_ns_) look_for_ended_lines(now_ns);
    if (now_ns >= straggler_ns_) look_for_stragglers(now_ns);
    if (now_ns >= late_lines_ns_) say_late_lines();
    if (const auto late = changes_.on_time(now_ns)) lose_if_missed(*late, now_ns);
  }
  if (now_ns < deadline_ns_) return;
  switch (phase_) {
    case phase::starting:
      stop(nodes_.names(awaited()) + " did not join within " + to_seconds(what_.start_limit_ns) +
               " (--start-limit sets the limit)" + job_is_stopped,
           1, now_ns);
      break;
    case phase::failing:
      end_failing(now_ns);
      break;
    case phase::told:
      enter(phase::terminating, now_ns + grace_ns);
      actions_.signal_all(SIGTERM);
      break;
    case phase::interrupted:
      actions_.say(nodes_.names(nodes_.members()) + " did not end within " + to_seconds(grace_ns) +
                   " of the signal: killed");
      kill(now_ns);
      break;
    case phase::terminating:
      kill(now_ns);
      break;
    case phase::killing:
      actions_.say("cannot end " + nodes_.names(nodes_.members()) +
                   "; look for leftover processes");
      given_up_ = true;
      break;
    case phase::running:
      break;
  }
}

void session::postpone(std::int64_t ns) {
  for (std::int64_t* const deadline : {&deadline_ns_, &straggler_ns_, &line_ns_, &late_lines_ns_}) {
    if (*deadline != no_deadline) *deadline += ns;
  }
  for (node_state& n : nodes_) {
    if (n.line_limit_ns != no_deadline) n.line_limit_ns += ns;
  }
  changes_.postpone(ns);
}

std::int64_t session::deadline_ns() const noexcept {
  return std::min({deadline_ns_, straggler_ns_, line_ns_, late_lines_ns_, changes_.deadline_ns()});
}

int session::status() const noexcept {
  const node_end first = nodes_.at(0).how;
  if (interrupt_ != 0 && status_ == 0) {
    // What node 0 made of the signal.
    const bool quiet = std::none_of(nodes_.begin(), nodes_.end(), [](const node_state& n) {
      return n.is == part::member && n.how.failed();
    });
    if (quiet && !given_up_) return 0;
    return !first.signalled && first.code != 0 ? first.code : 128 + interrupt_;
  }
  if (status_ != 0) return status_;
  if (given_up_) return 1;
  return first.failed() ? first.status() : late_status_;
}

}  // namespace strata::launcher
