// SPDX-License-Identifier: Apache-2.0
// From the first node to a job in which all have joined, and nodes that end before that.
#include <algorithm>
#include <csignal>
#include <utility>

#include "launch/messages.hpp"
#include "tools/strata/course/session.hpp"
#include "tools/strata/course/session_limits.hpp"
#include "tools/strata/events/shared_names.hpp"

namespace strata::launcher {

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
    return actions_.send(node, nodes_.found[told]);
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
  for (node_id one = 0; one < what_.nodes; ++one) actions_.send(one, frame_bytes);
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
  if (!over()) actions_.signal_all(SIGTERM);
}

}  // namespace strata::launcher
