// SPDX-License-Identifier: Apache-2.0
#include "tools/strata/session.hpp"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <utility>

#include "launch/messages.hpp"
#include "os/topology.hpp"
#include "strata/error.hpp"
#include "tools/strata/event_loop.hpp"

namespace strata::launch {

namespace {

constexpr std::int64_t ms = 1'000'000;
constexpr std::int64_t grace_ns = 2000 * ms;       // from a request to end to the next stronger one
constexpr std::int64_t settle_ns = 1000 * ms;      // for the other nodes to fail in the same way
constexpr std::int64_t line_grace_ns = 1000 * ms;  // from the end of a line to that of its process
constexpr std::int64_t straggler_limit_ns = 10'000 * ms;
constexpr std::int64_t give_up_ns = 5000 * ms;  // from SIGKILL on
// Some tools signal a process and then its whole group; that is one request.
constexpr std::int64_t same_request_ns = 250 * ms;

constexpr const char* job_is_stopped = "; the job is stopped";

std::string describe(node_end how) {
  if (!how.signalled) return "ended with status " + std::to_string(how.code);
  const char* const abbreviation = ::sigabbrev_np(how.code);
  return "was killed by signal " + std::to_string(how.code) +
         (abbreviation != nullptr ? std::string(" (SIG") + abbreviation + ")" : "");
}

std::string seconds(std::int64_t ns) {
  std::string text = std::to_string(static_cast<double>(ns) / 1e9);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text + " s";
}

}  // namespace

session::session(description what, hands& h, std::int64_t now_ns)
    : what_(std::move(what)),
      hands_(h),
      nodes_(what_.nodes),
      running_(what_.nodes),
      // Nobody waits for a node that is alone; it may be any program.
      deadline_ns_(alone() ? no_deadline : now_ns + what_.start_limit_ns),
      straggler_ns_(no_deadline),
      line_ns_(no_deadline) {
  for (node_state& n : nodes_) n.line_limit_ns = no_deadline;
}

std::string session::name(node_id node) const {
  return "node " + std::to_string(node) +
         (what_.on_host.empty() ? std::string() : what_.on_host[node]);
}

std::string session::names(const std::vector<node_id>& nodes) const {
  if (nodes.size() == 1) return name(nodes[0]);
  return "nodes " + os::to_ranges(std::vector<int>(nodes.begin(), nodes.end()));
}

template <class Predicate>
std::vector<node_id> session::running_where(Predicate p) const {
  std::vector<node_id> result;
  for (node_id node = 0; node < what_.nodes; ++node) {
    if (nodes_[node].running && p(nodes_[node])) result.push_back(node);
  }
  return result;
}

void session::enter(phase next, std::int64_t deadline_ns) {
  phase_ = next;
  deadline_ns_ = deadline_ns;
  if (next != phase::running) line_ns_ = straggler_ns_ = no_deadline;
}

void session::stop(const std::string& line, int status, std::int64_t now_ns) {
  hands_.say(line);
  status_ = status;
  enter(phase::terminating, now_ns + grace_ns);
  if (running_ != 0) hands_.signal_all(SIGTERM);
}

void session::lose(const std::vector<node_id>& gone, const std::string& why,
                   const std::string& line, int status, std::int64_t now_ns) {
  if (!line.empty()) hands_.say(line + job_is_stopped);
  status_ = status;
  for (const node_id node : gone) {
    const std::string message = pack_lost({node, why});
    for (const node_id other : running_where([](const node_state&) { return true; })) {
      if (std::find(gone.begin(), gone.end(), other) == gone.end()) hands_.send(other, message);
    }
  }
  enter(phase::told, now_ns + grace_ns);
}

void session::kill(std::int64_t now_ns) {
  hands_.signal_all(SIGKILL);
  enter(phase::killing, now_ns + give_up_ns);
}

void session::on_frame(node_id node, const frame& f, std::int64_t now_ns) {
  try {
    switch (f.kind) {
      case frame_kind::reachable:
        return on_reachable(node, f, now_ns);
      case frame_kind::finished:
        nodes_.at(node).finished = true;
        return;
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
  const auto first =
      std::find_if(nodes_.begin(), nodes_.end(), [](const node_state& n) { return n.joined; });
  joining.joined = true;
  joining.build_id = std::move(message.build_id);
  joining.where = std::move(message.where);
  ++joined_;
  if (phase_ != phase::starting) return;
  if (first != nodes_.end() && first->build_id != joining.build_id) {
    const auto other = static_cast<node_id>(first - nodes_.begin());
    const node_id low = std::min(node, other);
    const node_id high = std::max(node, other);
    return stop(name(high) + " runs another build of " + what_.program + " than " + name(low) +
                    " (build ids " + nodes_[high].build_id + " and " + nodes_[low].build_id +
                    "); install the same file on every host" + job_is_stopped,
                1, now_ns);
  }
  if (joined_ < what_.nodes) return;
  std::vector<address> everybody;
  for (const node_state& one : nodes_) everybody.push_back(one.where);
  const std::string directory = pack_directory(everybody);
  enter(phase::running, no_deadline);
  for (node_id one = 0; one < what_.nodes; ++one) hands_.send(one, directory);
}

void session::on_line_ended(node_id node, const std::string& why, std::int64_t now_ns) {
  if (phase_ != phase::starting && phase_ != phase::running) return;
  node_state& n = nodes_.at(node);
  if (!n.running) return;
  if (!why.empty()) return stop(name(node) + ": " + why + job_is_stopped, 1, now_ns);
  // How the process ends says more; often it just has.
  if (alone() || !n.joined || n.finished) return;
  n.line_limit_ns = now_ns + line_grace_ns;
  line_ns_ = std::min(line_ns_, n.line_limit_ns);
}

void session::on_ended(node_id node, node_end how, std::int64_t now_ns) {
  node_state& n = nodes_.at(node);
  if (!n.running) return;
  n.running = false;
  n.how = how;
  --running_;
  if (alone()) {
    const bool unasked = phase_ == phase::starting || phase_ == phase::running;
    if (how.signalled && unasked) hands_.say(name(node) + " " + describe(how));
    return;
  }
  if (phase_ == phase::starting) {
    on_early_end(node, now_ns);
  } else if (phase_ == phase::running) {
    on_late_end(node, now_ns);
  }
  if (phase_ == phase::failing && running_ == 0) end_failing(now_ns);
}

void session::on_early_end(node_id node, std::int64_t now_ns) {
  const node_end how = nodes_[node].how;
  if (how.signalled) {
    return stop(name(node) + " " + describe(how) + " before all had joined" + job_is_stopped,
                how.status(), now_ns);
  }
  status_ = how.failed() ? how.status() : 1;
  if (nodes_[node].joined) {
    failure_ = name(node) + " " + describe(how) + " before all had joined" + job_is_stopped;
  } else if (how.failed()) {
    failure_ = name(node) + " " + describe(how) + " before it joined" + job_is_stopped;
  } else {
    failure_ = name(node) + " ended before it joined: is " + what_.program + " a Strata program?";
  }
  enter(phase::failing, now_ns + settle_ns);
}

void session::end_failing(std::int64_t now_ns) {
  const node_state& first = nodes_[0];
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
  if (running_ != 0) hands_.signal_all(SIGTERM);
}

void session::on_late_end(node_id node, std::int64_t now_ns) {
  const node_state& n = nodes_[node];
  const std::string how = describe(n.how);
  if (!n.finished) {
    // Node 0 is the user's view of the program: what it had to say, it has said.
    const bool silent = node == 0 && !n.how.signalled && n.how.failed();
    const std::string why = n.how.signalled ? how : how + " before the job did";
    return lose({node}, why, silent ? "" : name(node) + " " + why,
                n.how.failed() ? n.how.status() : 1, now_ns);
  }
  if (n.how.failed() && (node != 0 || n.how.signalled)) {
    hands_.say(name(node) + " " + how + " after it had finished");
  }
  if (node != 0 && late_status_ == 0) late_status_ = n.how.status();
  if (node == 0) straggler_ns_ = now_ns + straggler_limit_ns;
}

void session::on_host_lost(const std::vector<node_id>& nodes, const std::string& why, bool user,
                           std::int64_t now_ns) {
  bool any = false;
  std::vector<node_id> gone;
  for (const node_id node : nodes) {
    node_state& n = nodes_.at(node);
    if (!n.running) continue;
    n.running = false;
    n.how = {false, 1};
    --running_;
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

void session::look_for_stragglers(std::int64_t now_ns) {
  straggler_ns_ = no_deadline;
  const auto missing = running_where([](const node_state& n) { return !n.finished; });
  if (!missing.empty()) {
    const std::string why = "did not end within " + seconds(straggler_limit_ns) + " after node 0";
    return lose(missing, why, names(missing) + " " + why, 1, now_ns);
  }
  const auto slow = running_where([](const node_state&) { return true; });
  if (!slow.empty()) {
    hands_.say("node 0 has ended; waiting for " + names(slow) + " (Ctrl-C ends the wait)");
  }
}

void session::look_for_ended_lines(std::int64_t now_ns) {
  line_ns_ = no_deadline;
  const auto open_ended = [](const node_state& n) { return !n.finished; };
  std::vector<node_id> silent;
  for (const node_id node : running_where(open_ended)) {
    const std::int64_t limit_ns = nodes_[node].line_limit_ns;
    if (limit_ns <= now_ns) {
      silent.push_back(node);
    } else {
      line_ns_ = std::min(line_ns_, limit_ns);
    }
  }
  if (silent.empty()) return;
  const std::string why = "closed its line to the launcher";
  const std::string line = names(silent) + " " + why;
  if (phase_ == phase::starting) return stop(line + job_is_stopped, 1, now_ns);
  lose(silent, why, line, 1, now_ns);
}

void session::on_time(std::int64_t now_ns) {
  if (over()) return;
  if (phase_ == phase::starting || phase_ == phase::running) {
    if (now_ns >= line_ns_) look_for_ended_lines(now_ns);
    if (now_ns >= straggler_ns_) look_for_stragglers(now_ns);
  }
  if (now_ns < deadline_ns_) return;
  switch (phase_) {
    case phase::starting:
      stop(names(running_where([](const node_state& n) { return !n.joined; })) +
               " did not join within " + seconds(what_.start_limit_ns) +
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
      hands_.say(names(running_where([](const node_state&) { return true; })) +
                 " did not end within " + seconds(grace_ns) + " of the signal: killed");
      kill(now_ns);
      break;
    case phase::terminating:
      kill(now_ns);
      break;
    case phase::killing:
      hands_.say("cannot end " + names(running_where([](const node_state&) { return true; })) +
                 "; look for leftover processes");
      given_up_ = true;
      break;
    case phase::running:
      break;
  }
}

void session::postpone(std::int64_t ns) {
  for (std::int64_t* const deadline : {&deadline_ns_, &straggler_ns_, &line_ns_}) {
    if (*deadline != no_deadline) *deadline += ns;
  }
  for (node_state& n : nodes_) {
    if (n.line_limit_ns != no_deadline) n.line_limit_ns += ns;
  }
}

std::int64_t session::deadline_ns() const noexcept {
  return std::min({deadline_ns_, straggler_ns_, line_ns_});
}

int session::status() const noexcept {
  const node_end first = nodes_[0].how;
  if (interrupt_ != 0 && status_ == 0) {
    // What node 0 made of the signal.
    const bool quiet = std::none_of(nodes_.begin(), nodes_.end(),
                                    [](const node_state& n) { return n.how.failed(); });
    if (quiet && !given_up_) return 0;
    return !first.signalled && first.code != 0 ? first.code : 128 + interrupt_;
  }
  if (status_ != 0) return status_;
  if (given_up_) return 1;
  return first.failed() ? first.status() : late_status_;
}

}  // namespace strata::launch
