// SPDX-License-Identifier: Apache-2.0
#include "net/udp/renewal_handshake.hpp"

#include <algorithm>

#include "strata/detail/check.hpp"

namespace strata::net::udp {

void renewal_handshake::begin(state s, std::int64_t now_ns) {
  state_ = s;
  now_.mine = settings_.nonce();
  next_ns_ = now_ns;
  pause_ns_ = settings_.pause_ns;
  limit_ns_ = now_ns + settings_.limit_ns;
}

void renewal_handshake::ask(std::int64_t now_ns) {
  STRATA_CHECK(asks_);
  begin(state::asking, now_ns);
  now_.its.clear();
}

renewal_handshake::outcome renewal_handshake::on_word(const word& w, std::int64_t now_ns) {
  if (!asks_ && w.says == word::step::call) {
    // Its first call, or one after it has given up the one before.
    if (w.of_who_asks != now_.its) {
      now_.its = w.of_who_asks;
      begin(state::answering, now_ns);
    }
    return outcome::none;
  }
  if (!asks_ && w.says == word::step::confirm) {
    if (state_ != state::answering || w.of_who_asks != now_.its || w.of_other != now_.mine)
      return outcome::none;
    state_ = state::met;
    next_ns_ = never_ns;
    return outcome::met;
  }
  if (!asks_ || w.says != word::step::answer || w.of_who_asks != now_.mine) return outcome::none;
  const bool is_first = state_ == state::asking;
  if (is_first) {
    state_ = state::met;
    now_.its = w.of_other;
  }
  // The other one repeats it until it has been confirmed.
  if (state_ == state::met && w.of_other == now_.its) next_ns_ = now_ns;
  return is_first ? outcome::met : outcome::none;
}

renewal_handshake::outcome renewal_handshake::on_time(std::int64_t now_ns) {
  if (!waits() || now_ns < limit_ns_) return outcome::none;
  state_ = state::idle;
  next_ns_ = never_ns;
  return asks_ ? outcome::not_met : outcome::none;
}

bool renewal_handshake::next_word(std::int64_t now_ns, word& w) {
  if (next_ns_ > now_ns) return false;
  if (asks_) {
    w = {waits() ? word::step::call : word::step::confirm, now_.mine, now_.its};
  } else {
    w = {word::step::answer, now_.its, now_.mine};
  }
  next_ns_ = waits() ? now_ns + pause_ns_ : never_ns;
  pause_ns_ = std::min(2 * pause_ns_, settings_.pause_max_ns);
  return true;
}

std::int64_t renewal_handshake::due_ns() const noexcept {
  return waits() ? std::min(next_ns_, limit_ns_) : next_ns_;
}

}  // namespace strata::net::udp
