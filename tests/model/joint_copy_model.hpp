// SPDX-License-Identifier: Apache-2.0
// An owner and its helper copy a block together, twice, and the message that calls for help may be
// late. Each piece is copied once, the owner sees all of it, and nobody is in the block any more
// when it is the owner's again.
#pragma once
#include "explore.hpp"
#include "mutations.hpp"
//
#include <atomic>

#include "net/joint_copy.hpp"

namespace strata::model {

enum class mishap { none, helper_fails, owner_gives_up, owner_gives_up_at_once };

template <template <class> class Atomic, unsigned Pieces, mishap Mishap = mishap::none>
struct copied_together : rl::test_suite<copied_together<Atomic, Pieces, Mishap>, 3> {
  static constexpr unsigned turns = 2;
  using copy_type = net::joint_copy<Atomic>;

  copy_type copy;
  // What stands in for the message: thread i + 1 is told of turn i. Not weakened: it is not ours.
  model_atomic<std::uint32_t> calls[turns];
  rl::var<int> from[Pieces];
  rl::var<int> to[Pieces];

  // Twice would be a race, or seen here.
  void copy_piece(unsigned piece) {
    RL_ASSERT(piece < Pieces);
    RL_ASSERT(to[piece](RL_INFO) == 0);
    to[piece](RL_INFO) = static_cast<int>(from[piece](RL_INFO));
  }

  void own(unsigned turn) {
    const int value = static_cast<int>(turn) + 1;
    for (unsigned p = 0; p < Pieces; ++p) {
      from[p](RL_INFO) = value;
      to[p](RL_INFO) = 0;
    }
    calls[turn].store(copy.open(), std::memory_order_release);
    const bool gives_up = turn == 0 && Mishap >= mishap::owner_gives_up;
    const bool claims = !gives_up || Mishap == mishap::owner_gives_up;
    for (unsigned piece = 0; claims && (piece = copy.claim(Pieces)) != copy.none;) {
      if (!gives_up) copy_piece(piece);
    }
    while (!copy.is_alone()) rl::yield(1, RL_INFO);
    const unsigned left = copy.left_over(Pieces);
    if (gives_up) return;
    RL_ASSERT(Mishap == mishap::helper_fails || left == copy.none);
    if (left != copy.none) copy_piece(left);
    for (unsigned p = 0; p < Pieces; ++p) RL_ASSERT(to[p](RL_INFO) == value);
  }

  void help(unsigned turn) {
    std::uint32_t called = 0;
    for (int looks = 0; looks < 3 && called == 0; ++looks)
      called = calls[turn].load(std::memory_order_acquire);
    if (called == 0) return;
    unsigned piece = copy.begin(called, Pieces);
    if (piece == copy.none) return;
    constexpr bool could = Mishap != mishap::helper_fails;
    while (could && piece != copy.none) {
      copy_piece(piece);
      piece = copy.another(called, Pieces);
    }
    copy.done(called, could);
  }

  void thread(unsigned self) {
    if (self != 0) return help(self - 1);
    for (unsigned turn = 0; turn < turns; ++turn) own(turn);
  }
};

}  // namespace strata::model
