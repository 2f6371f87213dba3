// SPDX-License-Identifier: Apache-2.0
// A message that is said later, or perhaps once more.
#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "cluster/words/kinds.hpp"

namespace strata::cluster {

struct message_copy {
  kind k;
  std::vector<std::byte> payload;
};

inline message_copy copy_of(kind k, std::span<const std::byte> head,
                            std::span<const std::byte> body) {
  message_copy m{k, {}};
  m.payload.reserve(head.size() + body.size());
  m.payload.assign(head.begin(), head.end());
  m.payload.insert(m.payload.end(), body.begin(), body.end());
  return m;
}

}  // namespace strata::cluster
