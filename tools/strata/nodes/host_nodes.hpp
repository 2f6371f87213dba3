// SPDX-License-Identifier: Apache-2.0
// The nodes of one host as the launcher sees them: below itself (local_nodes) or behind an agent
// (remote_nodes).
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "launch/frame.hpp"
#include "launch/job.hpp"
#include "tools/strata/events/event_loop.hpp"
#include "tools/strata/events/shared_names.hpp"
#include "tools/strata/processes/node_end.hpp"

namespace strata::launcher {

struct start_request {
  std::string program{};                 // a path
  std::vector<std::string> arguments{};  // beginning with the program's name
  std::vector<std::string> variables{};  // NAME=VALUE
  std::string directory{};
  job_description job{};  // without node, cpus and shared_memory, which differ from node to node
  std::vector<node_id> nodes{};  // to start here
  unsigned workers = 0;          // for each; 0: what its share of the cores allows
  bool bind = true;
  bool print_binding = false;
  bool capture_output = false;  // else the nodes write where the launcher would
  unsigned expected = 0;        // how many more will come, for whom some cores are kept; only late
};

enum class output_stream : std::uint8_t { out = 1, err = 2 };

// Who hears of them.
class node_listener {
 public:
  virtual void on_frame(node_id node, const frame& f) = 0;
  virtual void on_line_ended(node_id node, const std::string& why) = 0;
  virtual void on_ended(node_id node, node_end how) = 0;
  // An empty text: nothing more will come.
  virtual void on_output(node_id node, output_stream stream, std::string_view bytes) = 0;
  // A line for the user.
  virtual void on_note(const std::string& text) = 0;
  // The host was lost, or refused to start its nodes: none of them runs any more. `user` when the
  // user can put it right.
  virtual void on_host_lost(const std::vector<node_id>& nodes, const std::string& why,
                            bool user) = 0;

 protected:
  ~node_listener() = default;
};

class host_nodes {
 public:
  virtual ~host_nodes() = default;
  // Starts them all or throws user_error or error with none of them left running. A remote host
  // reports later, through on_host_lost(). Once; in an elastic job again, for nodes that come late.
  virtual void start(const start_request& what) = 0;
  virtual void send(node_id node, const std::string& frame_bytes) = 0;
  virtual void signal(int number) = 0;  // all nodes that still run
  // The terminal has signalled our group: those that it has not reached.
  virtual void signal_others(int number) { signal(number); }
  virtual void end(node_id node) = 0;  // kills this one
  [[nodiscard]] virtual bool any_running() const noexcept = 0;
  // Whoever reads the output is slow: take no more of it until told.
  virtual void pause_output(bool paused) = 0;
  // By when on_time() is to be called, and with the time (os::now_ns()): it may find a host lost.
  [[nodiscard]] virtual std::int64_t deadline_ns() const noexcept { return no_deadline; }
  virtual void on_time(std::int64_t) {}
  // Ends the nodes and whatever carries them at once, without a word.
  virtual void abandon() = 0;
};

}  // namespace strata::launcher
