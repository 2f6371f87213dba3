// SPDX-License-Identifier: Apache-2.0
// Measures the networks from one node to some others, before the job computes anything: round trips
// of a short message, then short streams. A state machine without sockets, threads or clock, the
// same in the runtime and in the simulation.
//
//   measuring node -> other   ping (number, bytes of no meaning)
//   other -> measuring node   pong (number)
//
// The others are measured one after the other, so that streams do not share this node's wire.
// Nobody is waited for long: who does not answer is tried again after all the others, as it may
// still be starting, until the time for all is over. Who took long to answer gets further turns,
// too: perhaps it was not the network, but a machine that had other things to do. Any number of
// pings is answered, also while this node measures and after it has; a pong that finds no room is
// not sent.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "cluster/words/codec.hpp"
#include "cluster/words/kinds.hpp"
#include "launch/found_links.hpp"

namespace strata::cluster {

// Of two nodes one measures; so each measures about half of its networks.
[[nodiscard]] constexpr bool measures(node_id n, node_id other) noexcept {
  return n != other && ((n + other) % 2 == 0) == (n < other);
}

class survey {
 public:
  struct limits {
    unsigned rounds = 8;   // round trips; the shortest counts
    unsigned pieces = 16;  // of a stream
    // The fastest counts; what is slow anyway gets one.
    unsigned streams = 3;
    // For an answer; more where answers have taken more than half of it. In further turns
    // rounds_ns.
    std::int64_t patience_ns = 100'000'000;
    std::int64_t rounds_ns = 50'000'000;   // for the round trips to one node that answers
    std::int64_t again_ns = 10'000'000;    // one that took longer is not repeated
    std::int64_t stream_ns = 250'000'000;  // for a stream
    // A round trip that a busy machine alone may explain, and turns of one whose shortest is
    // longer.
    std::int64_t doubtful_ns = 2'000'000;
    unsigned turns = 4;
    std::int64_t all_ns = 2'000'000'000;  // for everything
  };
  static constexpr std::size_t piece_bytes = std::size_t{16} << 10;

  class line {
   public:
    // False: there is no room for it now, nothing has happened. Never blocks.
    virtual bool try_post(node_id to, kind k, std::span<const std::byte> head,
                          std::span<const std::byte> body) = 0;

   protected:
    ~line() = default;
  };

  // The first ping has the number `first`; what answers one before, of another survey, is too late.
  survey(line& out, const std::vector<node_id>& others, std::int64_t now_ns, limits l,
         std::uint32_t first = 0);

  // Does what is due. Returns when to call again, unless something comes before.
  std::int64_t go_on(std::int64_t now_ns);
  // False: not one of its kinds. Throws malformed.
  bool on_message(node_id from, kind k, reader r, std::int64_t now_ns);

  [[nodiscard]] bool is_done() const noexcept { return waiting_.empty(); }
  // Of the next ping.
  [[nodiscard]] std::uint32_t next_number() const noexcept {
    return first_ + static_cast<std::uint32_t>(pings_.size());
  }
  struct result {
    node_id node;
    std::int64_t latency_ns;   // one way; half of what was waited in vain if it never answered
    std::int64_t bytes_per_s;  // of the stream; 0: it has not carried one
    // As it is told to the others.
    [[nodiscard]] launch::measured_link over(std::uint16_t network) const noexcept;
  };
  // Of all for whom there was time.
  [[nodiscard]] std::vector<result> results() const;

 private:
  struct measured {
    node_id node;
    std::int64_t asked_ns = -1;    // first
    std::int64_t shortest_ns = 0;  // round trip; 0: it has not answered
    unsigned turns = 0;            // that have ended since it took long to answer
    std::int64_t streamed_ns = 0;  // the shortest round trip when a stream was begun last
    unsigned streams = 0;          // that have ended
    double bytes_per_ns = 0;       // of the fastest
  };
  struct ping {
    std::size_t whose;  // in all_
    std::int64_t at_ns;
    bool is_piece;
    bool answered = false;
  };
  enum class step { rounds, stream };

  void begin(step s, std::int64_t now_ns);
  bool send(bool piece, std::int64_t now_ns);
  // Both return when to go on, or 0: at once.
  std::int64_t go_on_with_rounds(std::int64_t now_ns);
  std::int64_t go_on_with_stream(std::int64_t now_ns);
  // The stream to the one that has its turn is over.
  void end_stream();
  // It has been measured, perhaps for the last time.
  void end_turn(std::int64_t now_ns);
  void on_pong(node_id from, std::uint32_t number, std::int64_t now_ns);
  [[nodiscard]] std::int64_t patience_ns() const;
  void end(std::int64_t now_ns);

  line& out_;
  const limits limits_;
  const std::uint32_t first_;
  const std::int64_t began_ns_;
  std::int64_t ended_ns_ = 0;
  std::vector<measured> all_;
  std::deque<std::size_t> waiting_;  // in all_; the first has its turn
  std::vector<ping> pings_;          // by number, less first_

  // Of the step of whose turn it is.
  step step_ = step::rounds;
  std::int64_t step_began_ns_ = 0;
  std::int64_t moved_ns_ = 0;  // when something was sent or answered last
  unsigned sent_ = 0, answered_ = 0;
  std::int64_t answered_ns_ = 0;  // when the last was
};

}  // namespace strata::cluster
