// SPDX-License-Identifier: Apache-2.0
// Patterns of receives, to be taken by messages that fit them: each by one, found by hashing
// however many there are. Not thread-safe.
#pragma once
#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "messages/matching.hpp"

namespace strata::messages {

class wanted_patterns {
 public:
  void add(const pattern& p) {
    ++left_[p];
    shapes_ |= 1U << p.shape();
  }
  [[nodiscard]] bool has(const pattern& p) const { return left_.contains(p); }
  // Any of those that a message of this source and tag fits. False: there is none.
  bool take(const pattern& message) {
    for (unsigned shape = 0; shape < pattern_shapes; ++shape) {
      if ((shapes_ >> shape & 1U) == 0) continue;
      const auto found = left_.find(message.seen_as(shape));
      if (found == left_.end()) continue;
      if (--found->second == 0) left_.erase(found);
      return true;
    }
    return false;
  }

 private:
  struct hash_of {
    std::size_t operator()(const pattern& p) const noexcept { return p.hash(); }
  };
  std::unordered_map<pattern, std::size_t, hash_of> left_;  // and how many of each
  unsigned shapes_ = 0;                                     // bits: those that there were
};

}  // namespace strata::messages
