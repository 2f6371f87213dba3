// SPDX-License-Identifier: Apache-2.0
// What this node sends to one endpoint of another node: the room that is left there, and what waits
// for more.
//
// Invariant: what waits is in the order in which it was sent. Whatever leaves, of one source the
// program's older messages have left before (lanes.cpp, seeking.cpp).
#pragma once
#include <cstdint>
#include <memory>

#include "messages/matching.hpp"
#include "messages/request.hpp"
#include "messages/turns.hpp"
#include "messages/wire.hpp"
#include "sync/spin_lock.hpp"

namespace strata::messages {

struct lane : std::enable_shared_from_this<lane> {
  explicit lane(endpoint_id t) : target(t) {}
  const endpoint_id target;
  detail::spin_lock lock;
  std::uint32_t room = window_bytes;
  bool stuck = false;            // what is sent is not what is received
  bool awaits_news = false;      // what was sought there last has not been sent: see seeking.cpp
  bool is_held = false;          // it is among those of crowding.cpp
  bool is_let_go = false;        // what waits in it is sent, though others are among those
  outcome open = outcome::done;  // or how it has ended
  turns in_turn;                 // those who send
  waiting_messages<request> waiting;  // for room
  std::uint64_t eager = 0;            // messages that went with their bytes
  std::uint64_t last_notice = 0;      // that has said whether it is stuck
};

}  // namespace strata::messages
