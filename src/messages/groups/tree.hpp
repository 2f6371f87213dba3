// SPDX-License-Identifier: Apache-2.0
// A binomial tree over the members of a group, cut by rank: members are halves of aligned blocks of
// 2, 4, 8, ... ranks, and what one passes on is always a run of neighbouring ranks. The head of a
// block is the root if it is in it, else its first member; the head of a half is joined to the head
// of the block. So it has ceil(log2 N) levels for any root, and what comes up from below is in the
// order of the ranks.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>

namespace strata::messages {

// The members [first, last), reached through their head.
struct subtree {
  unsigned head, first, last;
  [[nodiscard]] unsigned size() const noexcept { return last - first; }
};

// One member's place.
class tree {
 public:
  tree(unsigned rank, unsigned size, unsigned root) noexcept : mine_{rank, rank, rank + 1} {
    const auto head = [root](unsigned first, unsigned last) {
      return first <= root && root < last ? root : first;
    };
    for (std::uint64_t half = 1; half < size; half *= 2) {
      const auto first = static_cast<unsigned>(rank & ~(2 * half - 1));
      const std::uint64_t middle = first + half;
      if (middle >= size) continue;  // there is no other half
      const auto last = static_cast<unsigned>(std::min<std::uint64_t>(first + 2 * half, size));
      const auto cut = static_cast<unsigned>(middle);
      const subtree other =
          rank < cut ? subtree{head(cut, last), cut, last} : subtree{head(first, cut), first, cut};
      if (head(first, last) != rank) {
        parent_ = other.head;
        return;
      }
      children_[count_++] = other;
      mine_.first = first;
      mine_.last = last;
    }
  }

  // The member and all that are below it.
  [[nodiscard]] const subtree& mine() const noexcept { return mine_; }
  // Smaller ones first; each is beside what this member has with those before it.
  [[nodiscard]] std::span<const subtree> children() const noexcept {
    return std::span(children_).first(count_);
  }
  // None: this is the root.
  [[nodiscard]] std::optional<unsigned> parent() const noexcept { return parent_; }

 private:
  subtree mine_;
  std::array<subtree, 32> children_{};
  unsigned count_ = 0;
  std::optional<unsigned> parent_;
};

}  // namespace strata::messages
