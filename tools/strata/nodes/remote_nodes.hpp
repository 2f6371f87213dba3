// SPDX-License-Identifier: Apache-2.0
// Nodes of another host: an agent there starts them, and ssh carries what agent and launcher say.
#pragma once
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "os/descriptor.hpp"
#include "tools/strata/events/event_loop.hpp"
#include "tools/strata/events/frame_channel.hpp"
#include "tools/strata/events/input.hpp"
#include "tools/strata/nodes/host_nodes.hpp"
#include "tools/strata/nodes/output_window.hpp"
#include "tools/strata/processes/child.hpp"

namespace strata::launcher {

// Pipes: to the agent, from it, and from ssh.
inline constexpr std::size_t descriptors_of_agent = 3;

class remote_nodes final : public host_nodes {
 public:
  // `command` begins with ssh or what stands for it, and ends before the host's name.
  remote_nodes(event_loop& loop, children& processes, node_listener& listener, std::string host,
               std::vector<std::string> command);
  ~remote_nodes() override;

  void start(const start_request& what) override;
  void send(node_id node, const std::string& frame_bytes) override;
  void signal(int number) override;
  void end(node_id node) override;
  [[nodiscard]] bool any_running() const noexcept override { return !running_.empty(); }
  void pause_output(bool paused) override;
  [[nodiscard]] std::int64_t deadline_ns() const noexcept override;
  void on_time(std::int64_t now_ns) override;
  void abandon() override;

 private:
  void start_agent();
  void on_frame(const frame& f);
  void on_end(const std::string& why);
  void read_complaints();
  void lose(const std::string& why, bool user);
  // One of ours that runs, or throws.
  node_id checked(node_id node) const;

  event_loop& loop_;
  children& processes_;
  node_listener& listener_;
  std::string host_;
  std::vector<std::string> command_;
  std::set<node_id> running_;
  child_id ssh_ = -1;
  std::unique_ptr<frame_channel> line_;
  os::descriptor complaints_;  // ssh's standard error
  std::string last_words_;
  std::unique_ptr<input_source> input_;  // if node 0 is there
  output_receipt output_;
  bool heard_ = false;                   // the agent has said something
  std::int64_t start_limit_ns_ = 0;      // for a first word, in words
  std::int64_t limit_ns_ = no_deadline;  // for a first word; then for the next look
  unsigned looks_in_vain_ = 0;           // since we have heard something
};

// The command that reaches other hosts: STRATA_SSH, split at blanks, or ssh. A program of that name
// is told never to ask. Throws user_error when there is no such program.
std::vector<std::string> remote_command();

}  // namespace strata::launcher
