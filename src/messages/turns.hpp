// SPDX-License-Identifier: Apache-2.0
// Who has the room that an endpoint gives, where several threads want it. Whoever waits longest is
// woken first, and would use up all of it before the others run, each time anew; these would send
// one message each. So where two sources have waited for room at once, whoever need not wait for it
// lets others of its worker run after a few messages, which leave together. That ends by itself
// after so many messages that those which one thread sends at once then are few beside them, and
// begins anew.
//
// With the lock of what has the room.
#pragma once
#include <cstdint>

namespace strata::messages {

class turns {
 public:
  // Somebody waits for room behind another one.
  void wanted() noexcept { left_ = UINT16_MAX; }
  // There was room for a message: whether its sender is to let others run.
  [[nodiscard]] bool take() noexcept { return left_ != 0 && left_-- % at_once == 0; }

 private:
  static constexpr std::uint16_t at_once = 8;
  std::uint16_t left_ = 0;
};

}  // namespace strata::messages
