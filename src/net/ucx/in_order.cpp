// SPDX-License-Identifier: Apache-2.0
#include "net/ucx/in_order.hpp"

#include <utility>

namespace strata::net::ucx {

namespace {

// What one message costs beside its payload.
constexpr std::size_t entry_bytes = 128;

}  // namespace

bool in_order::keep(unsigned what, const header& h, std::span<const std::byte> payload) {
  const std::uint32_t ahead = h.sequence - next_;
  if (ahead == 0 || ahead > early_bytes_max / entry_bytes) return false;  // the past is far ahead
  const std::size_t bytes = payload.size() + entry_bytes;
  if (bytes_ + bytes > early_bytes_max) return false;
  early e{what, h, {payload.begin(), payload.end()}};
  if (!kept_.try_emplace(h.sequence, std::move(e)).second) return false;
  bytes_ += bytes;
  return true;
}

std::optional<in_order::early> in_order::take() {
  if (kept_.empty()) return std::nullopt;
  const auto found = kept_.find(next_);
  if (found == kept_.end()) return std::nullopt;
  early e = std::move(found->second);
  kept_.erase(found);
  bytes_ -= e.payload.size() + entry_bytes;
  return e;
}

}  // namespace strata::net::ucx
