// SPDX-License-Identifier: Apache-2.0
// Messages that carry work, which are counted for quiescence.
#pragma once
#include <atomic>
#include <cstddef>
#include <span>

#include "cluster/words/surroundings.hpp"

namespace strata::cluster {

inline void post_counted(mailer& mail, work_counts& counts, node_id to, kind k,
                         std::span<const std::byte> head, std::span<const std::byte> body = {}) {
  // Before it can arrive. Partner: on_message() there, and quiescence.
  counts.sent.fetch_add(1, std::memory_order_seq_cst);
  try {
    mail.post(to, k, head, body);
  } catch (...) {
    // It goes nowhere: for quiescence it has been dealt with here.
    counts.received.fetch_add(1, std::memory_order_seq_cst);
    throw;
  }
}

}  // namespace strata::cluster
