// SPDX-License-Identifier: Apache-2.0
#include "tools/strata/nodes/output_window.hpp"

#include <algorithm>
#include <utility>

#include "tools/strata/nodes/agent_messages.hpp"

namespace strata::launcher {

void output_window::send(node_id node, output_stream stream, std::string_view bytes) {
  under_way_ += bytes.size();
  send_(pack_output(node, stream, bytes));
}

void output_window::add(node_id node, output_stream stream, std::string_view bytes) {
  // Something is held only while there is no room, so nothing overtakes.
  if (under_way_ < output_window_bytes) return send(node, stream, bytes);
  held_.push_back({node, stream, std::string(bytes)});
}

void output_window::taken(std::size_t bytes) {
  under_way_ -= std::min(bytes, under_way_);
  while (!held_.empty() && under_way_ < output_window_bytes) {
    const block next = std::move(held_.front());
    held_.pop_front();
    send(next.node, next.stream, next.bytes);
  }
}

void output_window::finish(node_id node) {
  for (const block& b : held_) {
    if (b.node == node) send(b.node, b.stream, b.bytes);
  }
  std::erase_if(held_, [node](const block& b) { return b.node == node; });
}

void output_receipt::received(std::size_t bytes) {
  untold_ += bytes;
  tell();
}

void output_receipt::pause(bool paused) {
  if (std::exchange(paused_, paused) != paused) tell();
}

// Not for every line: the agent has the rest of its window meanwhile.
void output_receipt::tell() {
  if (!paused_ && untold_ >= output_window_bytes / 4) send_(std::exchange(untold_, 0));
}

}  // namespace strata::launcher
