// SPDX-License-Identifier: Apache-2.0
// Items that come from another node.
#pragma once
#include <cstddef>

#include "strata/mailbox.hpp"

namespace strata::detail {

class mailbox_access {
 public:
  // Copies the item into the mailbox at `box`; returns the slot that is to be signalled for it.
  [[nodiscard]] static slot_ptr take_in(void* box, const void* item, std::size_t bytes);
};

}  // namespace strata::detail
