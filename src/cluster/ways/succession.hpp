// SPDX-License-Identifier: Apache-2.0
// What comes by a new way after what was sent before it by the old one, however much faster the new
// way is. Whoever changes its way to this node says a last word on the old one, behind all that it
// has sent there; until that has come, what comes by the new way is kept here.
//
// How much is kept: what the sender's program sends while its last word is under way. Called with
// the inbox.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "cluster/words/message_copy.hpp"
#include "cluster/words/retry_without_memory.hpp"

namespace strata::cluster {

class succession {
 public:
  explicit succession(std::size_t nodes) : from_(nodes) {}

  // `n` will say its last word by the old way, and go on by `table`.
  void await(node_id n, bool old_is_direct, std::uint32_t table) {
    from_[n] = {true, old_is_direct, table, {}};
    ++awaited_;
  }
  [[nodiscard]] bool awaits_somebody() const noexcept { return awaited_ != 0; }
  [[nodiscard]] bool awaits(node_id n) const noexcept { return from_[n].awaited; }

  // What n has said, forwarded by a table or directly (none). True: its turn comes later, and a
  // copy is kept.
  bool keeps(node_id n, std::optional<std::uint32_t> table, kind k,
             std::span<const std::byte> payload) {
    if (awaited_ == 0 || !from_[n].awaited) return false;
    source& s = from_[n];
    const bool by_new_way = table ? *table == s.table : !s.old_is_direct;
    if (!by_new_way) return false;
    // Nobody else knows of it any more.
    retry_without_memory([&] { s.kept.push_back(copy_of(k, payload, {})); });
    return true;
  }

  // Its last word has come, or none will. Returns what was kept, whose turn it is now.
  [[nodiscard]] std::vector<message_copy> ended(node_id n) {
    if (!from_[n].awaited) return {};
    from_[n].awaited = false;
    --awaited_;
    return std::exchange(from_[n].kept, {});
  }

 private:
  struct source {
    bool awaited = false, old_is_direct = false;
    std::uint32_t table = 0;
    std::vector<message_copy> kept{};
  };
  std::vector<source> from_;  // by node
  std::size_t awaited_ = 0;   // of them
};

}  // namespace strata::cluster
