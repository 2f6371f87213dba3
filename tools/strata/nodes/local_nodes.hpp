// SPDX-License-Identifier: Apache-2.0
// Nodes that are processes below this one.
#pragma once
#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "launch/share_cores.hpp"
#include "os/descriptor.hpp"
#include "tools/strata/events/event_loop.hpp"
#include "tools/strata/events/frame_channel.hpp"
#include "tools/strata/events/shared_names.hpp"
#include "tools/strata/nodes/host_nodes.hpp"
#include "tools/strata/processes/child.hpp"

namespace strata::launcher {

// Of each node: its line, and its output if it is captured.
inline constexpr std::size_t descriptors_with_output = 3;

// Memory for the nodes of one host, empty: its descriptor, or -1 and errno.
int make_job_memory();

class local_nodes final : public host_nodes {
 public:
  // `in` is the standard input of node 0, should it be here. `make_memory`: as make_job_memory().
  local_nodes(event_loop& loop, children& processes, node_listener& listener, int in,
              std::function<int()> make_memory = &make_job_memory);
  ~local_nodes() override;

  void start(const start_request& what) override;
  void send(node_id node, const std::string& frame_bytes) override;
  void signal(int number) override;
  void signal_others(int number) override;
  void end(node_id node) override;
  [[nodiscard]] bool any_running() const noexcept override { return running_ != 0; }
  void pause_output(bool paused) override;
  void abandon() override;

 private:
  struct one {
    node_id id;
    child_id process = -1;
    std::unique_ptr<frame_channel> line;   // none: the process has ended
    std::array<os::descriptor, 2> output;  // out, err: what the node writes, if captured
    core_share share;
  };

  [[nodiscard]] core_plan share(const start_request& what) const;
  void share_memory(transport_choice transport);
  void start_one(const start_request& what, const job_description& job, int null);
  void on_ended(node_id node, node_end how);
  void watch_output(one& n);
  // How many bytes; 0: there is nothing (more) at the moment.
  std::size_t read_output(one& n, output_stream stream);
  // What a node that has ended has said: it is in its pipes. Others that the node has started may
  // write there for ever.
  void drain_output(one& n);
  one* find(node_id node);

  event_loop& loop_;
  children& processes_;
  node_listener& listener_;
  int in_;
  std::function<int()> make_memory_;
  os::descriptor shared_memory_;
  bool has_tried_memory_ = false;
  std::vector<std::unique_ptr<one>> nodes_;
  std::size_t running_ = 0;
  bool paused_ = false;
};

}  // namespace strata::launcher
