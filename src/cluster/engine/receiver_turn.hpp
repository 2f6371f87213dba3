// SPDX-License-Identifier: Apache-2.0
// How long a receiver goes on looking for messages before it sees to everything else that it is
// for. As long as some come it looks again, and a node may be kept busy for ever by the others: but
// one of its receivers also tells its neighbour that it lives, and does what is due and what others
// want of it. So it looks in turns of turn_ns. It does not stop in the middle of a look, and does
// not read the clock for each message: a turn is longer by untimed_max messages, or by what one
// look takes in where that is more, whatever each of them costs.
#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>

namespace strata::cluster {

class receiver_turn {
 public:
  // A small part of the time between two beats, which is 10 ms at least; and so long that what a
  // receiver looks after between two turns costs nothing beside it.
  static constexpr std::int64_t turn_ns = 1'000'000;
  // After so many messages the clock is read: for each it would cost a tenth of a small one.
  static constexpr std::size_t untimed_max = 16;

  enum class outcome {
    looks_again,
    is_over,  // there may be more: begin() the next one after what else there is to do
    ran_dry,  // nothing has come for spin_ns
  };

  explicit receiver_turn(std::int64_t spin_ns) noexcept : spin_ns_(spin_ns) {}

  void begin(std::int64_t now_ns) noexcept {
    began_at_ = now_ns;
    untimed_ = 0;
    if (std::exchange(goes_on_, false)) return;
    awake_at_ = now_ns;
    has_found_ = false;
  }
  // It has looked once, and taken in so many messages. now_ns(): the time, if it is needed.
  template <class Now>
  [[nodiscard]] outcome looked(std::size_t messages, Now&& now_ns) {
    has_found_ = has_found_ || messages != 0;
    untimed_ += messages;
    if (messages != 0 && untimed_ < untimed_max) return outcome::looks_again;
    const std::int64_t now = now_ns();
    if (std::exchange(untimed_, 0) != 0) awake_at_ = now;
    if (messages == 0 && now - awake_at_ >= spin_ns_) return outcome::ran_dry;
    if (now - began_at_ < turn_ns) return outcome::looks_again;
    goes_on_ = true;
    return outcome::is_over;
  }
  // It has left the looking to others, who find what there is to find. The next turn is a first
  // one.
  void rest() noexcept { goes_on_ = false; }
  // Since it ran dry, or rested.
  [[nodiscard]] bool has_found() const noexcept { return has_found_; }
  // The turn before was over, and the next one is to begin.
  [[nodiscard]] bool goes_on() const noexcept { return goes_on_; }

 private:
  const std::int64_t spin_ns_;
  std::int64_t awake_at_ = 0;  // the clock when it had last found something, or began to look
  std::int64_t began_at_ = 0;
  std::size_t untimed_ = 0;  // messages since the clock was read
  bool has_found_ = false;
  bool goes_on_ = false;
};

}  // namespace strata::cluster
