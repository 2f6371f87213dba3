// SPDX-License-Identifier: Apache-2.0
// Which of two ways of doing something is the quicker one here and now: every so often a lap is
// done the other way, the last steps before it and the first ones after it are timed, and the
// better way is kept. Where the threads of both sides run decides, and threads move, and the cores
// of a virtual machine too. A whole lap, because what a step costs may depend on how the steps
// before were done.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace strata {

class quicker_way {
 public:
  // Steps of each way that are timed; their median counts, as a thread may lose its core.
  static constexpr unsigned samples = 9;
  // Laps from one trial to the next: the first one touches memory for the first time. Then more and
  // more while nothing changes, so that a way three times slower costs three in a hundred; one that
  // is slower still is tried so much the seldomer.
  static constexpr unsigned rest_least = 1, rest_most = 64, rest_longest = 512;
  // One whose first steps are so many times slower is given up with them: a lap of it could cost
  // more than all between two trials.
  static constexpr unsigned far_slower = 8;

  quicker_way() = default;
  explicit quicker_way(std::size_t lap_bytes) noexcept : lap_bytes_(lap_bytes) {}

  struct turn {
    bool second;
    bool timed;
    unsigned stage;
  };
  // Of the next step, about so many bytes. One that is timed is to be told of, if it ends well.
  [[nodiscard]] turn next(std::size_t bytes) noexcept {
    gone_ += bytes;
    if (phase_ == phase::resting && gone_ > rest_ * lap_bytes_) begin(phase::timing_this);
    if (phase_ == phase::trying && gone_ > lap_bytes_) begin(phase::timing_other);
    const bool other = phase_ != phase::resting && phase_ != phase::timing_this;
    const bool timed = phase_ != phase::resting && phase_ != phase::trying;
    return {second_ != other, timed, stage_};
  }
  // A timed one about so many bytes took so many ticks. Those that are told late count for nothing.
  void took(const turn& t, std::size_t bytes, std::uint64_t ticks) noexcept {
    if (t.stage != stage_) return;
    timed_[count_] = static_cast<double>(ticks) / static_cast<double>(bytes);
    if (++count_ < samples) return;
    std::nth_element(timed_.begin(), timed_.begin() + samples / 2, timed_.end());
    const double each = timed_[samples / 2];
    if (phase_ == phase::timing_this) {
      this_ = each;
      return begin(phase::beginning);
    }
    if (phase_ == phase::beginning && each <= far_slower * this_)
      return begin(phase::trying, gone_);
    // A way that is hardly better is not worth a change.
    const bool changes = each < .9 * this_;
    second_ = second_ != changes;
    rest_ = changes ? rest_least : std::min(2 * rest_, rest_after(each));
    begin(phase::resting);
  }
  [[nodiscard]] bool is_second() const noexcept { return second_; }

 private:
  // A trial is three of them: its first steps are timed as well, then it goes on for a lap.
  enum class phase { resting, timing_this, beginning, trying, timing_other };

  // Where the other way costs that much.
  [[nodiscard]] unsigned rest_after(double each) const noexcept {
    const double more = each - this_;
    if (more <= 2 * this_) return rest_most;
    return static_cast<unsigned>(std::min<double>(rest_most * more / (2 * this_), rest_longest));
  }
  void begin(phase p, std::size_t gone = 0) noexcept {
    phase_ = p;
    gone_ = gone;
    count_ = 0;
    ++stage_;
  }

  std::size_t lap_bytes_ = 0;
  std::size_t gone_ = 0;  // in this phase, in a trial since its beginning
  phase phase_ = phase::resting;
  unsigned stage_ = 0;
  unsigned rest_ = rest_least;
  unsigned count_ = 0;
  bool second_ = false;
  double this_ = 0;
  std::array<double, samples> timed_{};
};

}  // namespace strata
