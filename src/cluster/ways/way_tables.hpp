// SPDX-License-Identifier: Apache-2.0
// By which neighbours a gateway passes on what others send: a message carries the number of the
// ways by which it goes, so while ways change it stays on those that it began with.
//
// The newest two tables are kept: nobody goes by a third one any more. By one thread at a time.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "cluster/ways/routes.hpp"
#include "cluster/words/codec.hpp"

namespace strata::cluster {

class way_tables {
 public:
  // Takes the place of the last but one.
  void set(std::uint32_t number, const routes& ways) {
    table& t = tables_[number % tables_.size()];
    t.number = number;
    t.next.clear();
    for (unsigned n = 0; n < ways.nodes(); ++n)
      t.next.push_back(ways.to(static_cast<node_id>(n)).next);
  }
  [[nodiscard]] bool knows(std::uint32_t number) const noexcept {
    return tables_[number % tables_.size()].number == number;
  }
  // The neighbour; the node itself: no way leads there. Throws malformed.
  [[nodiscard]] node_id next(std::uint32_t number, node_id destination) const {
    const table& t = tables_[number % tables_.size()];
    if (t.number != number || t.next.empty())
      throw malformed("something to forward by ways that nobody goes");
    return t.next[destination];
  }

 private:
  struct table {
    std::uint32_t number = 0;
    std::vector<node_id> next{};  // by destination; empty: there is none
  };
  std::array<table, 2> tables_;
};

}  // namespace strata::cluster
