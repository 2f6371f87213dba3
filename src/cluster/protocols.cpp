// SPDX-License-Identifier: Apache-2.0
#include "cluster/protocols.hpp"

#include <atomic>
#include <exception>

#include "cluster/work/packed_token.hpp"

namespace strata::cluster {

void protocols::give_up(node_id node, const message_copy& m) {
  // The tasks are as good here.
  if (m.k == kind::tokens) return balance.take_back(reader(m.payload));
  if (!carries_work(m.k)) return;
  if (m.k == kind::invoke) give_up_packed(here_.network_worker(), reader(m.payload));
  const bool is_call = m.k == kind::invoke && is_call_packed(m.payload);
  // Of messages and calls those who wait for an answer hear.
  if (m.k < kind::message && !is_call) here_.fail(std::make_exception_ptr(has_left(node)));
  counts.received.fetch_add(1, std::memory_order_seq_cst);
}

}  // namespace strata::cluster
