// SPDX-License-Identifier: Apache-2.0
#include "tools/strata/course/changes.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include "tools/strata/events/event_loop.hpp"
#include "tools/strata/events/seconds.hpp"

namespace strata::launcher {

namespace {

// For a node that has been let in just when the job ended, to hear of it from the others.
constexpr std::int64_t last_entry_ns = 2'000'000'000;

[[noreturn]] void refuse_turn() { refuse_frame("a message comes out of turn"); }

}  // namespace

changes::changes(description what, node_table& nodes, job_actions& h)
    : what_(std::move(what)), nodes_(nodes), actions_(h) {}

changes::leave* changes::leaving(node_id node) {
  const auto found = std::find_if(leaves_.begin(), leaves_.end(),
                                  [&](const leave& one) { return one.node == node; });
  return found == leaves_.end() ? nullptr : &*found;
}

changes::leave* changes::leaving_at(leave::stage at) {
  const auto found =
      std::find_if(leaves_.begin(), leaves_.end(), [&](const leave& one) { return one.at == at; });
  return found == leaves_.end() ? nullptr : &*found;
}

bool changes::busy() { return coming_ || leaving_at(leave::stage::granted) != nullptr; }

void changes::ask_join(ticket who, unsigned nodes, std::int64_t now_ns) {
  if (!closed_.empty()) return actions_.denied(who, closed_);
  // The one that comes has its number already.
  unsigned promised = nodes_.size();
  for (const join& one : joins_) promised += one.nodes;
  if (coming_) --promised;
  const unsigned room = what_.capacity - std::min<unsigned>(promised, what_.capacity);
  if (nodes > room) {
    return actions_.denied(
        who, (room == 0 ? std::string("all ") : "all but " + std::to_string(room) + " of its ") +
                 std::to_string(what_.capacity) +
                 " node numbers are used, and none is used twice; strata run --elastic=MAX sets "
                 "how many there are");
  }
  joins_.push_back({who, nodes});
  begin_next(now_ns);
}

void changes::ask_leave(ticket who, node_id node) {
  const auto why_not = [&]() -> std::string {
    if (node >= nodes_.size()) return "there is no node " + std::to_string(node);
    if (node == 0) return "node 0 cannot leave; the job ends with it";
    if (!closed_.empty()) return closed_;
    if (leaving(node) != nullptr) return nodes_.name(node) + " is leaving already";
    switch (nodes_.at(node).is) {
      case part::coming:
        return nodes_.name(node) + " has not joined yet";
      case part::refused:
        return nodes_.name(node) + " never joined";
      case part::left:
        return nodes_.name(node) + " has left already";
      case part::member:
        break;
    }
    return {};
  }();
  if (!why_not.empty()) return actions_.denied(who, why_not);
  leaves_.push_back({node, who});
  actions_.send(node, pack_order(frame_kind::leave));
}

void changes::begin_next(std::int64_t now_ns) {
  while (!busy() && closed_.empty()) {
    if (leave* const ready = leaving_at(leave::stage::drained)) {
      ready->at = leave::stage::granted;
      return actions_.send(ready->node, pack_order(frame_kind::go));
    }
    if (joins_.empty()) return;
    begin_join(now_ns);
  }
}

void changes::begin_join(std::int64_t now_ns) {
  const std::vector<node_id> gone = nodes_.gone();
  const node_id node = nodes_.add();
  const ticket who = joins_.front().who;
  coming_ = newcomer{.node = node, .who = who, .deadline_ns = now_ns + what_.limit_ns};
  try {
    late_place place = actions_.spawn(node, who, gone);
    nodes_.at(node).host = place.host;
    nodes_.at(node).on_host = std::move(place.on_host);
  } catch (const std::exception& problem) {
    nodes_.at(node).running = false;
    refuse_because(problem.what(), now_ns);
  }
}

void changes::on_reachable(node_id node, reachable_message message, std::int64_t now_ns) {
  node_state& n = nodes_.at(node);
  if (!coming_ || coming_->node != node || coming_->at != newcomer::stage::starting) refuse_turn();
  n.joined = true;
  n.build_id = std::move(message.build_id);
  n.where = std::move(message.where);
  const std::string other = nodes_.other_build(node, 0, what_.program);
  if (!other.empty()) return refuse_because(other, now_ns);
  coming_->at = newcomer::stage::admitting;
  coming_->told = nodes_.members();
  coming_->awaited = {coming_->told.begin(), coming_->told.end()};
  const std::string admit = pack_admit({node, n.host, n.where});
  for (const node_id member : coming_->told) actions_.send(member, admit);
}

void changes::on_word(node_id node, frame_kind word, node_id about, std::int64_t now_ns) {
  switch (word) {
    case frame_kind::admitted:
      return on_admitted(node, about);
    case frame_kind::entered:
      return on_entered(node, now_ns);
    case frame_kind::drained:
      return on_drained(node, now_ns);
    case frame_kind::stays:
      return on_stays(node, now_ns);
    case frame_kind::refuses:
      return on_refuses(node, now_ns);
    default:
      refuse_turn();
  }
}

void changes::on_admitted(node_id node, node_id about) {
  // It did not know yet that this one will not come.
  if (about < nodes_.size() && nodes_.at(about).is == part::refused) return;
  if (!coming_ || coming_->node != about || coming_->awaited.erase(node) == 0) refuse_turn();
  if (!coming_->awaited.empty()) return;
  std::vector<address> everybody(nodes_.size());
  for (const node_id member : nodes_.members()) everybody[member] = nodes_.at(member).where;
  everybody[about] = nodes_.at(about).where;
  coming_->at = newcomer::stage::entering;
  // From here on it may say to node 0 that it is there, and would be a loss: what it needs to
  // connect it limits itself, and a member that computes may let it wait for as long.
  coming_->deadline_ns = no_deadline;
  actions_.send(about, pack_directory(everybody));
  const std::string measurements = nodes_.measurements();
  if (measurements.empty()) return;
  actions_.send(about, nodes_.closed_frame());
  actions_.send(about, measurements);
  actions_.send(about, pack_ways(nodes_.ways));
}

void changes::on_entered(node_id node, std::int64_t now_ns) {
  if (!coming_ || coming_->node != node || coming_->at != newcomer::stage::entering) refuse_turn();
  nodes_.at(node).is = part::member;
  const ticket who = coming_->who;
  coming_.reset();
  actions_.joined(who, node);
  const bool more = --joins_.front().nodes != 0;
  if (more && !closed_.empty()) actions_.denied(who, closed_);
  if (!more || !closed_.empty()) joins_.pop_front();
  begin_next(now_ns);
}

void changes::refuse(const std::string& what_it_did, std::int64_t now_ns) {
  if (coming_) give_up(nodes_.name(coming_->node) + " " + what_it_did, what_it_did, now_ns);
}

void changes::refuse_because(const std::string& sentence, std::int64_t now_ns) {
  if (coming_) give_up(sentence, "does not come: " + sentence, now_ns);
}

void changes::give_up(const std::string& for_asker, const std::string& for_members,
                      std::int64_t now_ns) {
  const newcomer one = *std::exchange(coming_, std::nullopt);
  node_state& n = nodes_.at(one.node);
  n.is = part::refused;
  const std::string lost = pack_lost({one.node, for_members});
  for (const node_id member : one.told) {
    if (nodes_.at(member).running && !nodes_.at(member).finished) actions_.send(member, lost);
  }
  if (n.running) actions_.end(one.node);
  // The others that were asked for with it would hardly fare better.
  joins_.pop_front();
  actions_.denied(one.who, for_asker);
  begin_next(now_ns);
}

void changes::on_drained(node_id node, std::int64_t now_ns) {
  leave* const one = leaving(node);
  // It did not know yet that the job ends, and it with the others.
  if (one == nullptr && !closed_.empty()) return;
  if (one == nullptr || one->at != leave::stage::asked) refuse_turn();
  one->at = leave::stage::drained;
  // Behind those that were drained before.
  const auto position = leaves_.begin() + (one - leaves_.data());
  std::rotate(position, position + 1, leaves_.end());
  begin_next(now_ns);
}

void changes::on_stays(node_id node, std::int64_t now_ns) {
  leave* const one = leaving(node);
  if (one == nullptr && !closed_.empty()) return;
  // It may also think better of it before it is told to go.
  if (one == nullptr || (one->at != leave::stage::drained && one->at != leave::stage::granted)) {
    refuse_turn();
  }
  one->at = leave::stage::asked;
  begin_next(now_ns);
}

void changes::on_refuses(node_id node, std::int64_t now_ns) {
  leave* const one = leaving(node);
  if (one == nullptr && !closed_.empty()) return;
  if (one == nullptr || one->at == leave::stage::finished) refuse_turn();
  actions_.denied(
      one->who,
      nodes_.name(node) + " cannot leave: nodes that share no network reach each other by it");
  leaves_.erase(leaves_.begin() + (one - leaves_.data()));
  begin_next(now_ns);
}

bool changes::on_finished(node_id node, std::int64_t now_ns) {
  leave* const one = leaving(node);
  // One that ends because another is lost has not left, though it was told to go.
  if (one != nullptr && one->at == leave::stage::granted && !nodes_.at(node).has_lost) {
    one->at = leave::stage::finished;
    nodes_.at(node).is = part::left;
    begin_next(now_ns);
    return true;
  }
  if (!closed_.empty()) return false;
  close("the job is ending");
  if (!coming_) return false;
  if (coming_->at == newcomer::stage::entering) {
    coming_->deadline_ns = std::min(coming_->deadline_ns, now_ns + last_entry_ns);
  } else {
    refuse_because(closed_, now_ns);
  }
  return false;
}

void changes::on_left_ended(node_id node) {
  const leave* const one = leaving(node);
  if (one == nullptr) return;
  const ticket who = one->who;
  leaves_.erase(leaves_.begin() + (one - leaves_.data()));
  const node_end how = nodes_.at(node).how;
  if (how.failed()) {
    return actions_.denied(who, nodes_.name(node) + " " + to_text(how) + " after it had finished");
  }
  actions_.left(who, node);
}

void changes::close(const std::string& why) {
  closed_ = why;
  while (joins_.size() > (coming_ ? 1U : 0U)) {
    actions_.denied(joins_.back().who, why);
    joins_.pop_back();
  }
  const auto ungranted = [](const leave& one) {
    return one.at == leave::stage::asked || one.at == leave::stage::drained;
  };
  for (const leave& one : leaves_) {
    if (ungranted(one)) actions_.denied(one.who, why);
  }
  std::erase_if(leaves_, ungranted);
}

void changes::stop(const std::string& why) {
  close(why);
  if (coming_) {
    // The members have worse to think of.
    coming_->told.clear();
    refuse_because(why, 0);
  }
  for (const leave& one : leaves_) {
    // Its process may be about to end; it has no part in the job any more.
    one.at == leave::stage::finished ? actions_.left(one.who, one.node)
                                     : actions_.denied(one.who, why);
  }
  leaves_.clear();
}

void changes::on_late(std::int64_t now_ns) {
  // Then it had less time.
  if (!closed_.empty()) return refuse_because(closed_, now_ns);
  std::string why = "did not join within " + to_seconds(what_.limit_ns) +
                    " (strata run --start-limit sets the limit)";
  if (!coming_->awaited.empty()) {
    why += ": " + nodes_.names({coming_->awaited.begin(), coming_->awaited.end()}) +
           " did not let it in";
  }
  refuse(why, now_ns);
}

std::optional<node_id> changes::on_time(std::int64_t now_ns) {
  if (!coming_ || now_ns < coming_->deadline_ns) return std::nullopt;
  const node_id late = coming_->node;
  on_late(now_ns);
  return late;
}

void changes::postpone(std::int64_t ns) {
  if (coming_ && coming_->deadline_ns != no_deadline) coming_->deadline_ns += ns;
}

std::int64_t changes::deadline_ns() const noexcept {
  return coming_ ? coming_->deadline_ns : no_deadline;
}

}  // namespace strata::launcher
