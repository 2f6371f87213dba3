// SPDX-License-Identifier: Apache-2.0
// A simulated job: its nodes, what joins them, and a launcher that lets nodes come and go.
#pragma once
#include <array>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "cluster/ways/way_plan.hpp"
#include "launch/job.hpp"
#include "sched/scheduler.hpp"
#include "sched/timers.hpp"
#include "sim/job_model.hpp"
#include "sim/simulated_node.hpp"
#include "sim/simulated_transport.hpp"
#include "sim/world.hpp"

namespace strata::sim {

// All nodes of a job, and what they share only because they live in one process.
class job final : private detail::timers::clock {
 public:
  job(world& w, const job_model& model);
  ~job();

  [[nodiscard]] simulated_node& node(node_id n) { return *nodes_[n]; }
  [[nodiscard]] std::size_t size() const noexcept { return nodes_.size(); }
  // What `strata join` and `strata leave` do: the next number comes; n leaves. One change happens
  // at a time. done: it has.
  // refused: no way leads to all others, or by n only.
  void come(std::function<void(node_id)> done, std::function<void(node_id)> refused = {});
  void leave(node_id n, std::function<void()> done, std::function<void()> refused = {});
  // What a fiber of any node threw, first.
  [[nodiscard]] std::exception_ptr failure() const { return failure_; }
  // The connection between these two ends, or the spare one, and what is under way is lost; both
  // hear of it, each in its own time.
  void tear(node_id a, node_id b, unsigned which = 0);
  // Nothing passes by it any more, and nobody hears of it.
  void silence(node_id a, node_id b, unsigned which = 0) { wires_[which]->silence(a, b); }
  // The cable is whole again. A connection that has ended stays ended until the nodes make another
  // one.
  void restore(node_id a, node_id b, unsigned which = 0) { wires_[which]->restore(a, b); }
  // How often nodes have tried to make a connection again.
  [[nodiscard]] std::uint32_t attempts() const noexcept { return connections_tried_; }
  // All nodes have; until then their workers have to be left alone.
  [[nodiscard]] bool has_begun() const noexcept { return beginnings_ == 0; }
  // Called with what node 0 would print.
  std::function<void(const std::string& report)> when_stalled;
  // Called when a failed computation is over and node 0 may begin the next one.
  std::function<void()> when_settled;
  // A node that comes is there, and has said and heard nothing yet.
  std::function<void(node_id)> when_made;

  world& in;
  const job_model model;

 private:
  friend class simulated_node;
  // Deadlines of all nodes' threads.
  [[nodiscard]] std::int64_t now_ns() const noexcept override { return in.now_ns(); }
  void alarm_at(std::int64_t time_ns) override;

  // The launcher: a change that waits for its turn, and the end of one.
  void change(std::function<void()> begin);
  void changed();
  void let_in(node_id n);
  void refuse(node_id n);
  // Of a node that has measured its networks.
  void measured(node_id n, std::vector<launch::measured_link> what);

  std::array<std::unique_ptr<wires>, 2> wires_;  // the second with job_model::spares
  std::uint32_t connections_tried_ = 0;          // since the job has begun

  std::deque<std::function<void()>> changes_;
  std::map<node_id, std::function<void()>> when_done_, when_refused_;
  std::vector<node_id> left_;
  std::vector<std::uint16_t> host_of_;  // by node
  cluster::way_plan plan_;              // what comers are told
  std::vector<std::vector<launch::measured_link>> measured_;
  std::size_t measuring_ = 0, beginnings_ = 0;  // nodes that have not yet

  std::int64_t next_alarm_ns_ = INT64_MAX;  // what is planned for other times is out of date
  // Gives the simulated workers their frames and stacks; none of its own workers ever gets anything
  // to do.
  std::unique_ptr<detail::scheduler> frames_;
  const detail::context outside_ = detail::context_of_this_thread();
  std::vector<std::unique_ptr<simulated_node>> nodes_;
  std::exception_ptr failure_;
};

}  // namespace strata::sim
