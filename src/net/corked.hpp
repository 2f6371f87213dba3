// SPDX-License-Identifier: Apache-2.0
// Corks a peer for as long as it lives. Its thread does nothing but send to that peer meanwhile (a
// wait could be for what is kept back), and `lasting`, what is sent in pieces, stays as it is.
#pragma once
#include <cstddef>
#include <span>

#include "net/transport.hpp"

namespace strata::net {

class corked {
 public:
  corked() = default;  // nothing
  corked(transport& over, node_id peer, std::span<const std::byte> lasting) noexcept
      : over_(&over), peer_(peer) {
    over.cork(peer, lasting);
  }
  ~corked() {
    if (over_ != nullptr) over_->uncork(peer_);
  }
  corked(const corked&) = delete;
  corked& operator=(const corked&) = delete;

 private:
  transport* const over_ = nullptr;
  const node_id peer_ = 0;
};

}  // namespace strata::net
