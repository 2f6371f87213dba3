// SPDX-License-Identifier: Apache-2.0
// What is too large for one message is posted in pieces, which may share writes.
#pragma once
#include <algorithm>
#include <cstddef>
#include <span>

#include "cluster/words/surroundings.hpp"
#include "net/corked.hpp"

namespace strata::cluster {

// post_piece(offset, piece) for each, of `most` bytes, in order; it posts to that node, and does
// nothing else.
template <class PostPiece>
void post_in_pieces(mailer& mail, node_id to, std::span<const std::byte> what, std::size_t most,
                    PostPiece&& post_piece) {
  if (what.size() <= most) return post_piece(0, what);
  const net::corked together = mail.cork(to, what);
  for (std::size_t done = 0; done != what.size();) {
    const std::size_t n = std::min(what.size() - done, most);
    post_piece(done, what.subspan(done, n));
    done += n;
  }
}

}  // namespace strata::cluster
