// SPDX-License-Identifier: Apache-2.0
// Large messages on their way: what this node fetches, and what others may fetch here.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "messages/fetch_choice.hpp"
#include "messages/request.hpp"
#include "net/transfers.hpp"
#include "net/wire.hpp"

namespace strata::messages {

struct fetch {
  request* receive = nullptr;
  net::node_id from = 0;
  std::uint64_t offer = 0;
  std::span<std::byte> into{};
  std::size_t asked = 0, arrived = 0;
  std::optional<fetch_choice::started> chosen{};  // where there was another way
  // It is the network's, which alone knows when nobody writes there any more; null: nobody does.
  net::transfers* moves = nullptr;
};
struct open_offer {
  request* send = nullptr;
  bool moves = false;    // as above: when nobody reads there any more
  bool helped = false;   // help_to_copy() may read there, until it is `fetched`
  bool fetched = false;  // while it still moves
  [[nodiscard]] bool is_in_use() const noexcept { return moves || helped; }
};

}  // namespace strata::messages
