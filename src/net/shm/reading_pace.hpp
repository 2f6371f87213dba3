// SPDX-License-Identifier: Apache-2.0
// How soon a reader that has read all looks again. Each look takes the line of the ring's tail, and
// what lies behind it, from the writer that is about to write there; a reader that is faster than
// its writer does so for every message, and slows both down. So while messages follow each other
// it leaves the writer alone for a moment, and then finds several at once. That is longer for large
// messages, of which fewer are written in it.
//
// Not where an answer is waited for: whoever has sent something since the last message looks again
// at once. But one that sends now and then, to say that there is room, say, still reads a train.
// What comes later than that moment after the one before it waits for nothing.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace strata::net::shm {

class reading_pace {
 public:
  // Messages, one soon after the other, before they are said to follow each other. Each that is
  // sent in between takes away half of them.
  static constexpr unsigned train = 8;
  // By so many bytes a moment becomes as long again, and that often at most.
  static constexpr std::size_t lengthens = 512, longest = 8;

  // For small messages.
  explicit reading_pace(std::uint64_t moment_ticks) noexcept
      : shortest_(moment_ticks), moment_(moment_ticks) {}

  // A look found a message of so many bytes; `sent` have gone the other way until now. The clock is
  // not looked at for an answer: that would be a tenth of the time that one takes.
  template <class Clock>
  void found(std::size_t bytes, std::uint64_t sent, Clock&& now) noexcept {
    if (sent != sent_) {
      sent_ = sent;
      in_a_row_ = std::min(in_a_row_, 4 * train) / 2;
      if (in_a_row_ == 0) return;
    }
    moment_ = shortest_ * std::min(1 + bytes / lengthens, longest);
    const std::uint64_t before = std::exchange(found_at_, now());
    in_a_row_ = found_at_ - before < 2 * moment_ ? in_a_row_ + 1 : 0;
  }
  // The same look found one more.
  void found_more() noexcept { ++in_a_row_; }
  // Whether to look now, and not later.
  [[nodiscard]] bool is_time(std::uint64_t now) const noexcept {
    return now - found_at_ >= moment_;
  }
  // Whether is_time() has to be asked: it needs a clock.
  [[nodiscard]] bool leaves_alone(std::uint64_t sent) const noexcept {
    return in_a_row_ >= train && sent == sent_;
  }

 private:
  const std::uint64_t shortest_;
  std::uint64_t moment_;
  std::uint64_t found_at_ = 0;
  std::uint64_t sent_ = 0;
  unsigned in_a_row_ = 0;
};

}  // namespace strata::net::shm
