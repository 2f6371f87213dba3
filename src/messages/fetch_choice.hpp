// SPDX-License-Identifier: Apache-2.0
// How messages of middling size are fetched from one node of this host: its memory is read, or both
// ends copy at the same time, by way of the memory that they share. Which one is quicker depends on
// the machine and on where the threads run, so it is measured.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/quicker_way.hpp"

namespace strata::messages {

class fetch_choice {
 public:
  struct started {
    quicker_way::turn turn{};
    double at = 0;
    [[nodiscard]] bool reads() const noexcept { return turn.second; }
  };
  [[nodiscard]] started start(std::size_t bytes, std::uint64_t now_ticks) noexcept {
    pass(now_ticks);
    ++under_way_;
    return {ways_.next(bytes), shared_};
  }
  // The message is there.
  void done(const started& s, std::size_t bytes, std::uint64_t now_ticks) noexcept {
    pass(now_ticks);
    --under_way_;
    if (s.turn.timed) ways_.took(s.turn, bytes, static_cast<std::uint64_t>(shared_ - s.at));
  }

 private:
  static constexpr std::size_t lap_bytes = std::size_t{2} << 20;

  // Those that are under way share the time: all that come by one thread one behind the other are
  // as dear as those that as many threads read in as long, and come together.
  void pass(std::uint64_t now_ticks) noexcept {
    if (under_way_ != 0 && now_ticks > last_)
      shared_ += static_cast<double>(now_ticks - last_) / under_way_;
    last_ = now_ticks;
  }

  quicker_way ways_{lap_bytes};
  unsigned under_way_ = 0;
  double shared_ = 0;  // ticks that one has had which was under way all the time
  std::uint64_t last_ = 0;
};

}  // namespace strata::messages
