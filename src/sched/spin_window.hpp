// SPDX-License-Identifier: Apache-2.0
// How long a worker that finds no work looks for some before it sleeps: learned from how long it
// has been without work before. Where the next work mostly comes soon after it has given up, it
// looks for longer, since waking it costs more; where none comes for long, it looks for less, since
// that was in vain; and where others wait for its core, for little, since the work that it waits
// for may be theirs to make. Source of the first two: the governor that polls before a virtual CPU
// halts in Linux (Documentation/virt/kvm/halt-polling.rst).
#pragma once
#include <algorithm>
#include <cstdint>

namespace strata::detail {

class spin_window {
 public:
  // From least() to 4 * usual; from usual on.
  explicit spin_window(std::uint64_t usual) noexcept : usual_(usual), now_(usual) {}

  [[nodiscard]] std::uint64_t ticks() const noexcept { return now_; }
  // After so long it is worth while to find out whether others wait for the core.
  [[nodiscard]] std::uint64_t ticks_alone() const noexcept { return usual_ / 4; }

  // There was no work for so long, looking and sleeping together.
  void was_idle_for(std::uint64_t ticks) noexcept {
    if (kept_short_ != 0) {
      --kept_short_;
    } else if (ticks > 4 * usual_) {
      now_ = std::max(now_ / 2, least());
    } else if (ticks > now_) {
      now_ = std::clamp(2 * now_, usual_, 4 * usual_);
    }
  }
  // Somebody else has run on this core when we let it. Until we ask again, which is not every time.
  void others_wait() noexcept {
    ++times_lost_;
    now_ = least();
    kept_short_ = 64;
    not_alone_ = 16;
  }
  // Asked before each sleep: whether nobody else has wanted the core before the last few of them.
  [[nodiscard]] bool is_alone() noexcept {
    if (not_alone_ == 0) return true;
    --not_alone_;
    return false;
  }
  // How often others have had the core.
  [[nodiscard]] std::uint64_t times_lost() const noexcept { return times_lost_; }

 private:
  [[nodiscard]] std::uint64_t least() const noexcept { return usual_ / 8; }

  std::uint64_t usual_, now_;
  unsigned kept_short_ = 0;  // for so many times
  unsigned not_alone_ = 0;   // the same
  std::uint64_t times_lost_ = 0;
};

}  // namespace strata::detail
