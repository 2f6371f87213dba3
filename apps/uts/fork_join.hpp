// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <strata/fork_join.hpp>

#include "apps/uts/tree.hpp"

namespace uts {

// A task per node: while the subtree of one child is counted, the children after it may be taken by
// another worker, which does the same with them. Most of the time nobody takes them, and then the
// next of them is the next round of a loop rather than a call. So is the way down to the last
// child, before which no fork looks whether the stack has room: a chain of only children may be a
// million nodes long.
class children_search {
 public:
  // Adds what is found below and including n to `found`. Call inside a runtime.
  static void visit(const parameters& tree, const node& n, tally& found) {
    const unsigned children = child_count(tree, n);
    found += tally_of(n, children);
    if (children > 0) children_search(tree, n, 0, children, found).run();
  }

 private:
  children_search(const parameters& tree, const node& parent, unsigned first, unsigned last,
                  tally& found)
      : tree_(tree), parent_(parent), found_(found), next_(first), last_(last), counted_(first) {}

  // The two branches capture one pointer, which travels in a register; that is why there is an
  // object for the loop's state.
  void run() {
    for (;;) {
      for (; next_ + 1 < last_; ++next_) {
        const auto [nothing, taken] =
            strata::fork2join_inline([this] { count_next(); }, [this] { return take_rest(); });
        if (taken > 0) {
          found_ += taken_;
          return;
        }
      }
      // Nobody else looks here any more: the last child takes its parent's place.
      parent_ = child(parent_, next_);
      last_ = child_count(tree_, parent_);
      found_ += tally_of(parent_, last_);
      if (last_ == 0) return;
      next_ = 0;
      counted_.store(0, std::memory_order_relaxed);
    }
  }

  void count_next() {
    visit(tree_, child(parent_, next_), found_);
    counted_.store(next_ + 1, std::memory_order_relaxed);
  }

  // Called by the loop itself, it finds the child before it counted and leaves the rest to the
  // loop. A thief mostly comes earlier; if it comes just then, it may see either, and both are
  // right. Nobody changes next_ or parent_ before this has returned.
  std::uint64_t take_rest() {
    if (counted_.load(std::memory_order_relaxed) != next_) return 0;
    taken_ = tally{};
    children_search(tree_, parent_, next_ + 1, last_, taken_).run();
    return taken_.nodes;
  }

  const parameters& tree_;
  node parent_;
  tally& found_;
  unsigned next_;
  unsigned last_;
  std::atomic<unsigned> counted_;  // children before this one are counted
  tally taken_;                    // what a thief found in the rest
};

// Call inside a runtime.
inline tally fork_join(const parameters& tree) {
  tally found{};
  children_search::visit(tree, root(tree), found);
  return found;
}

}  // namespace uts
