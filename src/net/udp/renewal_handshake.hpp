// SPDX-License-Identifier: Apache-2.0
// How two nodes whose connection over UDP has ended agree on another one: what one of them knows of
// that, as a state machine without sockets, threads or clock. Of the two the one with the higher
// number asks.
//
//   asks   -> other   call      the nonce of who asks
//   other  -> asks    answer    both
//   asks   -> other   confirm   both
//
// Either nonce is fresh, and the keys of the connection are made of the two (seal.hpp): so what was
// said by another one, however late it comes, is nothing here. Who has heard its own nonce knows
// that the other one speaks now. These words are sealed, too, under keys of their own, each with a
// number that is used once; whoever carries them here hears none twice, and none that is older than
// another one (words.hpp).
//
// A word that waits for an answer is repeated until it has come, or the time is over. One of the
// two may believe that they have met when the last word was lost: it finds out as with any
// connection whose other end is silent.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "net/udp/seal.hpp"
#include "net/udp/sending.hpp"
#include "net/udp/words.hpp"

namespace strata::net::udp {

class renewal_handshake {
 public:
  struct settings {
    std::int64_t pause_ns = 20'000'000, pause_max_ns = 500'000'000;  // between two repetitions
    std::int64_t limit_ns = 3'000'000'000;
    std::function<std::string()> nonce = &fresh_nonce;
  };
  renewal_handshake(node_id self, node_id peer, settings s)
      : asks_(self > peer), settings_(std::move(s)) {}

  // Begins anew if it has begun already.
  void ask(std::int64_t now_ns);

  enum class outcome { none, met, not_met };
  // The peer has said that, and it is fresh.
  [[nodiscard]] outcome on_word(const word& w, std::int64_t now_ns);
  [[nodiscard]] outcome on_time(std::int64_t now_ns);
  // What is to be said now. False: nothing.
  [[nodiscard]] bool next_word(std::int64_t now_ns, word& w);
  // on_time() and next_word() are to be called then.
  [[nodiscard]] std::int64_t due_ns() const noexcept;

  // Of the connection on which they have agreed last.
  struct terms {
    std::string mine, its;  // nonces
  };
  [[nodiscard]] const terms& agreed() const noexcept { return now_; }

 private:
  enum class state { idle, asking, answering, met };
  void begin(state s, std::int64_t now_ns);
  [[nodiscard]] bool waits() const noexcept {
    return state_ == state::asking || state_ == state::answering;
  }

  const bool asks_;
  const settings settings_;
  state state_ = state::idle;
  terms now_{};
  std::int64_t next_ns_ = never_ns;  // when something is said (again)
  std::int64_t pause_ns_ = 0, limit_ns_ = never_ns;
};

}  // namespace strata::net::udp
