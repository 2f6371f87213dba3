// SPDX-License-Identifier: Apache-2.0
// What all members have, one after the other by rank, and what they do with that beyond trees.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "messages/groups/collectives.hpp"

namespace strata::messages {

inline void copy_bytes(byte_view from, byte_room to) {
  if (!from.empty() && from.data() != to.data()) std::memmove(to.data(), from.data(), from.size());
}

// Blocks by rank: of one size, where the last may be smaller, or nothing; or of any.
struct blocks {
  std::size_t each = 0, total = 0;
  std::vector<std::size_t> begins{};  // of any size: by rank, and behind the last
  [[nodiscard]] std::size_t begin(std::uint64_t rank) const noexcept {
    return begins.empty() ? std::min<std::size_t>(rank * each, total) : begins[rank];
  }
  template <class Span>
  [[nodiscard]] Span of(Span all, std::uint64_t first, std::uint64_t last) const noexcept {
    return all.subspan(begin(first), begin(last) - begin(first));
  }
};

// Everybody has its own block in `all`, and gets those of all others.
void exchange_blocks(member& me, const blocks& cut, byte_room all);
// all_to_all(), the blocks of several members in each message.
void all_to_all_packed(member& me, byte_view out, byte_room in, std::size_t block);

// For each distance d between ranks f(the member d ranks on, the member d ranks back), in which
// something may go there and come from there.
template <class F>
void for_each_other(member& me, F&& f) {
  const std::uint64_t n = me.size();
  for (std::uint64_t far = 1; far < n; ++far) {
    // Half of all others may have sent already to one that has not come here yet. There must be
    // room for them.
    if (far % 256 == 0) me.meet();
    f(static_cast<unsigned>((me.rank() + far) % n),
      static_cast<unsigned>((me.rank() + n - far) % n));
  }
}

}  // namespace strata::messages
