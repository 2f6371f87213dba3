// SPDX-License-Identifier: Apache-2.0
// What is too large for one message is posted in pieces, which may share writes.
#pragma once
#include <algorithm>
#include <cstddef>

#include "cluster/surroundings.hpp"
#include "net/corked.hpp"

namespace strata::cluster {

// post_piece(offset, bytes) for each, in order; it posts to that node, and does nothing else.
template <class PostPiece>
void post_in_pieces(mailer& mail, node_id to, std::size_t bytes, std::size_t piece_bytes_max,
                    PostPiece&& post_piece) {
  if (bytes <= piece_bytes_max) return post_piece(0, bytes);  // straight from where it is
  const net::corked together = mail.cork(to);
  for (std::size_t done = 0; done != bytes;) {
    const std::size_t n = std::min(bytes - done, piece_bytes_max);
    post_piece(done, n);
    done += n;
  }
}

}  // namespace strata::cluster
