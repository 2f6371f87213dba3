// SPDX-License-Identifier: Apache-2.0
// How messages of middling size are fetched from one node of this host: its memory is read, or both
// ends copy at the same time, by way of the memory that they share. Which one is quicker depends on
// the machine and on where the threads run, so it is measured.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/quicker_way.hpp"
#include "os/clock.hpp"

namespace strata::messages {

class fetch_choice {
 public:
  struct started {
    quicker_way::turn turn{};
    std::uint64_t at = 0;
    [[nodiscard]] bool reads() const noexcept { return turn.second; }
  };
  [[nodiscard]] started start(std::size_t bytes) noexcept {
    return {ways_.next(bytes), os::ticks()};
  }
  // The message is there. Several may be under way at a time: each counts from when the one before
  // was there.
  void done(const started& s, std::size_t bytes) noexcept {
    const std::uint64_t now = os::ticks();
    if (s.turn.timed) ways_.took(s.turn, bytes, now - std::max(s.at, last_));
    last_ = now;
  }

 private:
  static constexpr std::size_t lap_bytes = std::size_t{2} << 20;
  quicker_way ways_{lap_bytes};
  std::uint64_t last_ = 0;
};

}  // namespace strata::messages
