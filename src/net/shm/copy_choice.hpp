// SPDX-License-Identifier: Apache-2.0
// Which of two ways of copying is the faster one here and now: every so often a few copies are made
// the other way, and timed, and as many this way. Where the threads of both sides run decides, and
// threads move, and the cores of a virtual machine too. Only the writer's time counts: it is the
// one that waits for lines, and while messages follow each other the slower side.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace strata::net::shm {

class copy_choice {
 public:
  // Copies of each way that are timed; their median counts, as a thread may lose its core.
  static constexpr unsigned samples = 5;
  // The first ones touch memory for the first time.
  static constexpr unsigned first_trial = 128;
  // From one trial to the next: what it costs where the other way is slower is a few in a thousand.
  static constexpr unsigned period = 2048;

  struct turn {
    bool streaming;
    bool timed;
  };
  // Of the next copy. One that is timed is to be told of, before the next turn.
  [[nodiscard]] turn next() noexcept {
    at_ = at_ == period ? 1 : at_ + 1;
    const bool other = at_ > first_trial && at_ <= first_trial + samples;
    return {streaming_ != other, at_ > first_trial && at_ <= first_trial + 2 * samples};
  }
  // A timed one of so many bytes took so many ticks.
  void took(std::size_t bytes, std::uint64_t ticks) noexcept {
    const double each = static_cast<double>(ticks) / static_cast<double>(bytes);
    const unsigned sample = at_ - first_trial - 1;
    (sample < samples ? other_ : this_).at(sample % samples) = each;
    // A way that is hardly better is not worth a change.
    if (sample + 1 == 2 * samples && median(other_) < .9 * median(this_)) streaming_ = !streaming_;
  }
  [[nodiscard]] bool streams() const noexcept { return streaming_; }

 private:
  using timed = std::array<double, samples>;
  static double median(timed& t) noexcept {
    std::nth_element(t.begin(), t.begin() + samples / 2, t.end());
    return t[samples / 2];
  }

  unsigned at_ = 0;  // in this period, from 1
  bool streaming_ = false;
  timed other_{}, this_{};
};

}  // namespace strata::net::shm
