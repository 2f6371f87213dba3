// SPDX-License-Identifier: Apache-2.0
#include "tools/strata/session.hpp"

#include <algorithm>
#include <csignal>
#include <optional>
#include <utility>

#include "base/one_line.hpp"
#include "launch/messages.hpp"
#include "strata/error.hpp"
#include "tools/strata/event_loop.hpp"

namespace strata::launch {

namespace {

constexpr std::int64_t ms = 1'000'000;
constexpr std::int64_t grace_ns = 2000 * ms;      // from a request to end to the next stronger one
constexpr std::int64_t own_end_ns = 10'000 * ms;  // for what a program still does about a loss
constexpr std::int64_t settle_ns = 1000 * ms;     // for the other nodes to fail in the same way
// From the end of a line to that of its process. A process that is killed closes its line first,
// and the kernel may take seconds for what else it has: sockets, for example, while namespaces of
// networks are taken down.
constexpr std::int64_t line_grace_ns = 10'000 * ms;
constexpr std::int64_t straggler_limit_ns = 10'000 * ms;
constexpr std::int64_t give_up_ns = 5000 * ms;  // from SIGKILL on
// Some tools signal a process and then its whole group; that is one request.
constexpr std::int64_t same_request_ns = 250 * ms;

constexpr const char* job_is_stopped = "; the job is stopped";

}  // namespace

session::session(description what, job_hands& h, std::int64_t now_ns)
    : what_(std::move(what)),
      hands_(h),
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
  hands_.say(line);
  status_ = status;
  enter(phase::terminating, now_ns + grace_ns);
  if (!over()) hands_.signal_all(SIGTERM);
}

void session::lose(const std::vector<node_id>& gone, const std::string& why,
                   const std::string& line, int status, std::int64_t now_ns) {
  late_lines_.clear();  // that is why
  if (!line.empty()) hands_.say(line + job_is_stopped);
  status_ = status;
  for (const node_id node : gone) {
    const std::string message = pack_lost({node, why});
    for (const node_id other : nodes_.members()) {
      if (std::find(gone.begin(), gone.end(), other) == gone.end()) hands_.send(other, message);
    }
  }
  // Node 0 is the program, and may have something to save, unless it does not even answer.
  const node_state& first = nodes_.at(0);
  const bool answers = first.missed == 0 || std::find(gone.begin(), gone.end(), 0) == gone.end();
  const bool program_goes_on = first.running && answers;
  enter(phase::told, now_ns + (program_goes_on ? own_end_ns : grace_ns));
}

void session::kill(std::int64_t now_ns) {
  hands_.signal_all(SIGKILL);
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

void session::on_reachable(node_id node, const frame& f, std::int64_t now_ns) {
  reachable_message message = unpack_reachable(f.payload);
  node_state& joining = nodes_.at(node);
  if (joining.joined) refuse_frame("a message comes out of turn");
  const auto others = nodes_.members_where([](const node_state& n) { return n.joined; });
  joining.joined = true;
  joining.build_id = std::move(message.build_id);
  joining.where = std::move(message.where);
  ++joined_;
  if (phase_ != phase::starting) return;
  if (!others.empty()) {
    const std::string differ = nodes_.other_build(node, others[0], what_.program);
    if (!differ.empty()) return stop(differ + job_is_stopped, 1, now_ns);
  }
  if (joined_ < what_.nodes) return;
  std::vector<address> everybody;
  for (node_id one = 0; one < what_.nodes; ++one) everybody.push_back(nodes_.at(one).where);
  measuring_ = std::any_of(everybody.begin(), everybody.end(),
                           [](const address& where) { return where.doors.size() > 1; });
  tell_all(pack_directory(everybody), !measuring_);
}

void session::on_found(node_id node, const frame& f) {
  node_state& n = nodes_.at(node);
  const std::size_t told = n.found.size();
  if (n.joined || told == found_rounds) refuse_frame("a message comes out of turn");
  if (n.is == part::coming) {
    if (told == nodes_.found.size()) refuse_frame("this job has found no networks");
    n.found.emplace_back();
    return hands_.send(node, nodes_.found[told]);
  }
  if (told != nodes_.found.size()) refuse_frame("a message comes out of turn");
  n.found.push_back(unpack_found(f.payload));
  if (phase_ != phase::starting || !awaited().empty()) return;
  std::vector<std::string> all;
  for (node_id one = 0; one < what_.nodes; ++one) all.push_back(nodes_.at(one).found.at(told));
  nodes_.found.push_back(pack_all_found(all));
  tell_all(nodes_.found.back(), false);
}

void session::on_closed(node_id node, const frame& f) {
  node_state& n = nodes_.at(node);
  if (!measuring_ || node >= what_.nodes || n.closed_told != closed_told_ ||
      closed_told_ == closed_rounds)
    refuse_frame("a message comes out of turn");
  for (const closed_link& c : unpack_closed(f.payload)) {
    if (c.higher >= what_.nodes || (c.lower != node && c.higher != node))
      refuse_frame("a message numbers a node wrongly");
    nodes_.closed.insert(c);
  }
  if (nodes_.closed.size() > closed_max)
    refuse_frame("too many networks are closed between nodes; name those that are open");
  ++n.closed_told;
  if (phase_ != phase::starting || !awaited().empty()) return;
  ++closed_told_;
  tell_all(nodes_.closed_frame(), false);
}

void session::on_measured(node_id node, const frame& f) {
  node_state& n = nodes_.at(node);
  if (!measuring_ || n.measured || node >= what_.nodes || closed_told_ != closed_rounds)
    refuse_frame("a message comes out of turn");
  auto mine = unpack_measured(f.payload);
  for (const measured_link& m : mine) {
    if (m.other >= what_.nodes) refuse_frame("a message numbers a node wrongly");
  }
  n.measured = std::move(mine);
  if (phase_ != phase::starting || !awaited().empty()) return;
  tell_all(nodes_.measurements(), true);
}

void session::on_ways(node_id node, const frame& f) {
  if (node != 0 || !measuring_ || !elastic()) refuse_frame("a message comes out of turn");
  nodes_.ways = unpack_ways(f.payload);
}

// Before the first of them can answer, the job is what they take it for.
void session::tell_all(const std::string& frame_bytes, bool job_begins) {
  if (job_begins) enter(phase::running, no_deadline);
  for (node_id one = 0; one < what_.nodes; ++one) hands_.send(one, frame_bytes);
}

// By those who want to begin.
std::vector<node_id> session::awaited() const {
  const auto has_found = [this](const node_state& n) {
    return n.found.size() > nodes_.found.size();
  };
  if (std::any_of(nodes_.begin(), nodes_.end(), has_found))
    return nodes_.members_where([&](const node_state& n) { return !has_found(n); });
  const auto has_told = [this](const node_state& n) {
    return closed_told_ < closed_rounds ? n.closed_told > closed_told_ : n.measured.has_value();
  };
  return nodes_.members_where(
      [&](const node_state& n) { return !n.joined || (measuring_ && !has_told(n)); });
}

void session::on_finished(node_id node, std::int64_t now_ns) {
  node_state& n = nodes_.at(node);
  if (n.is == part::coming) {
    return changes_.refuse("ended before it had joined", now_ns);
  }
  n.finished = true;
  if (!elastic() || phase_ != phase::running) return;
  // It may have been the last one: the others ended while it was on its way out.
  if (!changes_.on_finished(node, now_ns) || !over()) return;
  say_late_lines();
  changes_.stop("the job has ended");
}

void session::on_word(node_id node, const frame& f, std::int64_t now_ns) {
  const node_id about = unpack_node(f.payload);
  if (!elastic()) refuse_frame("a message comes out of turn");
  // What was said before it was known that the job stops is of no interest.
  if (phase_ != phase::running) return;
  changes_.on_word(node, f.kind, about, now_ns);
}

// A newcomer that ended before it could say that all know it had part in the job if others knew it:
// node 0 is the first to.
void session::on_missed(node_id node, const lost_message& lost, std::int64_t now_ns) {
  if (lost.node == node || lost.node >= nodes_.size()) refuse_frame("a message comes out of turn");
  if (phase_ != phase::running) return;
  // A newcomer that loses somebody ends, and the job goes on.
  if (nodes_.at(node).is == part::coming) return;
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

void session::ask_join(ticket who, unsigned nodes, std::int64_t now_ns) {
  changes_.ask_join(who, nodes, now_ns);
}

void session::ask_leave(ticket who, node_id node) { changes_.ask_leave(who, node); }

void session::on_line_ended(node_id node, const std::string& why, std::int64_t now_ns) {
  if (phase_ != phase::starting && phase_ != phase::running) return;
  node_state& n = nodes_.at(node);
  if (!n.running || n.is == part::refused || n.is == part::left) return;
  if (!why.empty() && n.is == part::coming) {
    return changes_.refuse_because(nodes_.name(node) + ": " + why, now_ns);
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
      if (n.missed != 0) lose_newcomer(node, now_ns);
      return;
    case part::left:
      if (phase_ == phase::running) on_late_end(node, now_ns);
      return changes_.on_left_ended(node);
    case part::member:
      break;
  }
  if (alone()) {
    const bool unasked = phase_ == phase::starting || phase_ == phase::running;
    if (how.signalled && unasked) hands_.say(nodes_.name(node) + " " + to_text(how));
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

void session::on_early_end(node_id node, std::int64_t now_ns) {
  const node_end how = nodes_.at(node).how;
  if (how.signalled) {
    return stop(nodes_.name(node) + " " + to_text(how) + " before all had joined" + job_is_stopped,
                how.status(), now_ns);
  }
  status_ = how.failed() ? how.status() : 1;
  if (nodes_.at(node).joined) {
    failure_ = nodes_.name(node) + " " + to_text(how) + " before all had joined" + job_is_stopped;
  } else if (how.failed()) {
    failure_ = nodes_.name(node) + " " + to_text(how) + " before it joined" + job_is_stopped;
  } else {
    failure_ = nodes_.name(node) + " ended before it joined: is " + what_.program +
               " a Strata program, and does it make a strata::runtime with these arguments?";
  }
  enter(phase::failing, now_ns + settle_ns);
}

void session::end_failing(std::int64_t now_ns) {
  const node_state& first = nodes_.at(0);
  if (what_.asks_for_help && std::all_of(nodes_.begin(), nodes_.end(), [](const node_state& n) {
        return !n.running && !n.joined && !n.how.failed();
      })) {
    status_ = 0;
    return;
  }
  if (first.running || first.how.signalled || first.how.code == 0) {
    return stop(failure_, status_, now_ns);
  }
  // A program that does not like its arguments has said so on every node.
  status_ = first.how.code;
  enter(phase::terminating, now_ns + grace_ns);
  if (!over()) hands_.signal_all(SIGTERM);
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
    may_follow ? say_later(line, now_ns) : hands_.say(line);
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
  for (const std::string& line : std::exchange(late_lines_, {})) hands_.say(line);
  late_lines_ns_ = no_deadline;
}

void session::on_host_lost(const std::vector<node_id>& nodes, const std::string& why, bool user,
                           std::int64_t now_ns) {
  bool any = false;
  std::vector<node_id> gone;
  for (const node_id node : nodes) {
    node_state& n = nodes_.at(node);
    if (!n.running) continue;
    n.running = false;
    if (n.is == part::coming) changes_.refuse_because(why, now_ns);
    // With the other nodes it is done, as far as anybody will ever know.
    if (n.is == part::left) changes_.on_left_ended(node);
    if (n.is != part::member) continue;
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
    hands_.say(why);
    late_status_ = 1;
    if (over()) say_late_lines();
  }
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
    hands_.say("node 0 has ended; waiting for " + nodes_.names(slow) + " (Ctrl-C ends the wait)");
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

void session::on_time(std::int64_t now_ns) {
  if (over()) return;
  if (phase_ == phase::starting || phase_ == phase::running) {
    if (now_ns >= line_ns_) look_for_ended_lines(now_ns);
    if (now_ns >= straggler_ns_) look_for_stragglers(now_ns);
    if (now_ns >= late_lines_ns_) say_late_lines();
    changes_.on_time(now_ns);
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
      hands_.signal_all(SIGTERM);
      break;
    case phase::interrupted:
      hands_.say(nodes_.names(nodes_.members()) + " did not end within " + to_seconds(grace_ns) +
                 " of the signal: killed");
      kill(now_ns);
      break;
    case phase::terminating:
      kill(now_ns);
      break;
    case phase::killing:
      hands_.say("cannot end " + nodes_.names(nodes_.members()) + "; look for leftover processes");
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

}  // namespace strata::launch
