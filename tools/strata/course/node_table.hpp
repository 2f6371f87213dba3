// SPDX-License-Identifier: Apache-2.0
// The nodes of a job as its course knows them: session and changes share it. Numbers are given out
// once; a node that has gone keeps its place here.
#pragma once
#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "launch/job.hpp"
#include "tools/strata/events/shared_names.hpp"
#include "tools/strata/processes/node_end.hpp"

namespace strata::launcher {

enum class part : std::uint8_t {
  member,   // from the start, or since it has entered
  coming,   // late, and no member yet
  refused,  // late, and will not be one
  left,     // was a member, and has gone as agreed
};

struct node_state {
  part is = part::member;
  bool joined = false;    // has said where it can be reached
  bool finished = false;  // has said that it leaves on purpose
  bool running = true;    // its process
  unsigned missed = 0;    // not 0: another node has lost it, as the first of all, the second, ...
  std::string why{};      // then, unless it was coming
  bool has_lost = false;  // it has told of the loss of another one, for which it ends
  node_end how{};
  std::int64_t line_limit_ns;  // its line has ended: until when its process should
  std::uint16_t host = 0;      // of one that came late
  std::string on_host{};       // " on NAME", or nothing
  address where{};
  std::string build_id{};
  // What it has found of its networks, each time that it was asked.
  std::vector<std::string> found{};
  unsigned closed_told = 0;  // so often it has told of closed networks, in a job of several
  // Its networks, in a job of several; none: it has not said, or never will.
  std::optional<std::vector<measured_link>> measured{};
};

class node_table {
 public:
  explicit node_table(node_id nodes);

  [[nodiscard]] node_id size() const noexcept { return static_cast<node_id>(all_.size()); }
  node_state& at(node_id node) { return all_.at(node); }
  [[nodiscard]] const node_state& at(node_id node) const { return all_.at(node); }
  auto begin() noexcept { return all_.begin(); }
  auto end() noexcept { return all_.end(); }
  [[nodiscard]] auto begin() const noexcept { return all_.begin(); }
  [[nodiscard]] auto end() const noexcept { return all_.end(); }
  // One that comes late. Its number. References to the others stay valid.
  node_id add();

  // The members that run and for which p(state) holds.
  template <class Predicate>
  [[nodiscard]] std::vector<node_id> members_where(Predicate p) const {
    std::vector<node_id> result;
    for (node_id node = 0; node < size(); ++node) {
      const node_state& n = all_[node];
      if (n.is == part::member && n.running && p(n)) result.push_back(node);
    }
    return result;
  }
  [[nodiscard]] std::vector<node_id> members() const {
    return members_where([](const node_state&) { return true; });
  }
  // Numbers that are no members' any more, or never were one's.
  [[nodiscard]] std::vector<node_id> gone() const;

  // The frame with what those who began the job have measured; empty: there was nothing.
  [[nodiscard]] std::string measurements() const;

  // The frames with what those who began the job have found, of each time; for those who come.
  std::vector<std::string> found{};

  // Of which networks those who began the job have said that they are closed.
  std::set<closed_link> closed{};
  [[nodiscard]] std::string closed_frame() const;

  // What node 0 has said last of the ways that messages take; for those who come.
  std::string ways{};

  // "node 3 on b", "nodes 1,3-4"
  [[nodiscard]] std::string name(node_id node) const;
  [[nodiscard]] std::string names(const std::vector<node_id>& nodes) const;
  // Says that the builds of two nodes differ; nothing when they do not.
  [[nodiscard]] std::string other_build(node_id a, node_id b, const std::string& program) const;

 private:
  std::deque<node_state> all_;
};

}  // namespace strata::launcher
