// SPDX-License-Identifier: Apache-2.0
// The order of what one peer sends. UCX delivers in order as long as a peer's messages travel over
// one connection; told to use several at once (UCX_MAX_EAGER_RAILS) it lets small ones overtake the
// parts of large ones. Who is early waits here for those before it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "net/wire.hpp"

namespace strata::net::ucx {

class in_order {
 public:
  // More than a peer can have on its way at once: see settings::in_flight_bytes_max.
  static constexpr std::size_t early_bytes_max = std::size_t{16} << 20;

  struct early {
    unsigned what;
    header h;
    std::vector<std::byte> payload;
  };

  [[nodiscard]] bool is_next(std::uint32_t sequence) const noexcept { return sequence == next_; }
  // The next one has been handed over.
  void advance() noexcept { ++next_; }

  // Keeps a copy of one that is not the next. False: it came before, or is further ahead than an
  // honest peer can be.
  [[nodiscard]] bool keep(unsigned what, const header& h, std::span<const std::byte> payload);
  // The next one, if it was kept.
  [[nodiscard]] std::optional<early> take();

 private:
  std::uint32_t next_ = 0;
  std::size_t bytes_ = 0;
  std::map<std::uint32_t, early> kept_;
};

}  // namespace strata::net::ucx
