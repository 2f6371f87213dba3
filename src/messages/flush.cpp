// SPDX-License-Identifier: Apache-2.0
// Whether what was sent to an endpoint has arrived: a call goes there behind it.
#include <memory>
#include <mutex>

#include "messages/current_messenger.hpp"
#include "messages/messenger.hpp"
#include "strata/error.hpp"
#include "strata/remote_thread.hpp"

namespace strata::messages {

bool messenger::is_open(endpoint_id id) const noexcept {
  port* const p = ports_.find(id);
  if (p == nullptr) return false;
  const std::lock_guard lock(p->lock);
  return p->id == id;
}

namespace {
bool is_open_there(endpoint_id id) {
  const messenger* const here = messenger_here();
  return here != nullptr && here->is_open(id);
}
}  // namespace

void messenger::flush(endpoint_id to) {
  if (broken_.load(std::memory_order_acquire)) throw_loss();
  const net::node_id node = to.node();
  check_target(to);
  bool is_there = false;
  try {
    // The call takes the way of the messages, behind them; so does what was refused of them, before
    // the answer.
    is_there = node == self_ ? is_open(to) : call<is_open_there>(on_node{node}, to);
  } catch (const node_left_error&) {  // and its endpoints with it
  }
  if (is_there) return;
  if (node != self_) {
    const std::shared_ptr<lane> l = lanes_.to(to);
    const auto is_known = [&l] {
      const std::lock_guard lock(l->lock);
      return l->open != outcome::done;
    };
    if (!is_known()) close_lane(to, outcome::closed);
  }
  throw endpoint_closed_error(to, "endpoint " + text_of(to) + " has ended");
}

}  // namespace strata::messages
