// SPDX-License-Identifier: Apache-2.0
// What nodes of another host write, on its way to the launcher. Only a window's worth is under way,
// so that all else that an agent has to say never waits behind more than that, and the launcher
// never stops to listen because whoever reads its output is slow.
#pragma once
#include <cstddef>
#include <deque>
#include <functional>
#include <string>
#include <string_view>

#include "tools/strata/nodes/host_nodes.hpp"

namespace strata::launcher {

inline constexpr std::size_t output_window_bytes = 256 << 10;

// The agent's end.
class output_window {
 public:
  // send gets frames for the launcher.
  explicit output_window(std::function<void(const std::string&)> send) : send_(std::move(send)) {}

  // On its way, or held until there is room.
  void add(node_id node, output_stream stream, std::string_view bytes);
  // The launcher has room for so much more.
  void taken(std::size_t bytes);
  // The node has ended: what it wrote goes before that, room or not. It is no more than what was
  // held and what the node's pipes could hold, as with a node that is the launcher's own.
  void finish(node_id node);
  // Whether anything is held: the nodes are to wait with more.
  [[nodiscard]] bool is_full() const noexcept { return !held_.empty(); }

 private:
  struct block {
    node_id node;
    output_stream stream;
    std::string bytes;
  };
  void send(node_id node, output_stream stream, std::string_view bytes);

  std::function<void(const std::string&)> send_;
  std::deque<block> held_;
  std::size_t under_way_ = 0;
};

// The launcher's end.
class output_receipt {
 public:
  // send gets what the agent is told to have room for.
  explicit output_receipt(std::function<void(std::size_t bytes)> send) : send_(std::move(send)) {}

  void received(std::size_t bytes);
  // There is no room for more at the moment, or there is again.
  void pause(bool paused);

 private:
  void tell();

  std::function<void(std::size_t)> send_;
  std::size_t untold_ = 0;
  bool paused_ = false;
};

}  // namespace strata::launcher
