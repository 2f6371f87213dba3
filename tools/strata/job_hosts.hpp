// SPDX-License-Identifier: Apache-2.0
// The hosts of a job and which node is where: starts the nodes of the beginning and those that come
// late, and passes on what is for them. Knows nothing of the job's course.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "launch/job.hpp"
#include "tools/strata/course/job_actions.hpp"
#include "tools/strata/events/event_loop.hpp"
#include "tools/strata/events/shared_names.hpp"
#include "tools/strata/nodes/host_nodes.hpp"
#include "tools/strata/placement.hpp"
#include "tools/strata/processes/child.hpp"
#include "tools/strata/run_request.hpp"

namespace strata::launcher {

// What somebody asked for, and how far it has come.
struct late_wish {
  join_request what{};                  // nodes: that have not been started
  std::optional<std::uint16_t> host{};  // of those that have
};

class job_hosts {
 public:
  // `job` holds what does not differ from node to node.
  job_hosts(event_loop& loop, children& processes, node_listener& listener, const run_request& what,
            job_description job, const std::vector<placed_host>& hosts);

  // The nodes of the beginning. Throws user_error and error.
  void start();
  // Throws user_error for what could not be started, as far as that can be known before.
  void check(const join_request& what);
  // One of those that are wished. Throws error.
  late_place start_late(node_id node, late_wish& wish, const std::vector<node_id>& gone);

  void send(node_id node, const std::string& frame_bytes);
  void end(node_id node);
  void signal(int number);
  // But not to nodes that have it from the terminal, which has signalled our group.
  void signal_others(int number);
  void pause_output(bool paused);
  // As host_nodes have them, for all.
  [[nodiscard]] std::int64_t deadline_ns() const noexcept;
  void on_time(std::int64_t now_ns);

 private:
  struct one_host {
    std::unique_ptr<host_nodes> nodes;
    placed_host where;
  };

  void add(const placed_host& where);
  // Throws user_error where there is none.
  void require_folder() const;
  void start_on(const one_host& h, start_request request) const;
  std::uint16_t host_for(late_wish& wish);
  std::vector<one_host>::iterator local_host(const join_request& what);
  [[nodiscard]] placed_host new_host(const join_request& what) const;

  event_loop& loop_;
  children& processes_;
  node_listener& listener_;
  const run_request& what_;
  job_description job_;        // host_of: of all nodes by now
  std::error_code no_folder_;  // why folder_ is empty
  std::string folder_;         // ours when the job began: that may be removed while it runs
  std::vector<one_host> hosts_;
};

}  // namespace strata::launcher
