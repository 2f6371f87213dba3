// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <memory>
#include <strata/fiber.hpp>

#include "apps/uts/tree.hpp"

namespace uts {

// A threaded function per node of the tree. How many children there are is known only now, so the
// sync slot is set to their number at run time; each child has a place of its own for its tally,
// and the slot's fiber adds them up.
class visit : public strata::threaded {
 public:
  visit(const parameters& tree, const node& n, strata::global_ptr<tally> result,
        strata::slot_ptr done)
      : tree_(tree), node_(n), result_(result), done_(done) {}

  void start() {
    children_ = child_count(tree_, node_);
    if (children_ == 0) return answer(tally_of(node_, 0));
    if (children_ > few_.size()) many_ = std::make_unique_for_overwrite<tally[]>(children_);
    ALL_COUNTED.init(children_);
    const strata::slot_ptr counted = strata::to_sptr(ALL_COUNTED);
    tally* const tallies = children_tallies();
    // The frame may be gone as soon as the last token is sent.
    const unsigned children = children_;
    for (unsigned i = 0; i < children; ++i) {
      strata::token<visit>(tree_, child(node_, i), strata::to_global(&tallies[i]), counted);
    }
  }

 private:
  void add_up() {
    tally found = tally_of(node_, children_);
    const tally* const tallies = children_tallies();
    for (unsigned i = 0; i < children_; ++i) found += tallies[i];
    answer(found);
  }

  void answer(const tally& found) {
    strata::put_sync(found, result_, done_);
    terminate();
  }

  tally* children_tallies() { return many_ ? many_.get() : few_.data(); }

  parameters tree_;
  node node_;
  strata::global_ptr<tally> result_;
  strata::slot_ptr done_;
  unsigned children_ = 0;
  std::array<tally, 8> few_;
  std::unique_ptr<tally[]> many_;
  strata::fiber<&visit::add_up> ALL_COUNTED{this, 1};
};

// Call inside a runtime.
inline tally fibers(const parameters& tree) {
  tally found{};
  strata::completion done{1};
  strata::token<visit>(tree, root(tree), strata::to_global(&found), done.sptr());
  done.wait();
  return found;
}

}  // namespace uts
