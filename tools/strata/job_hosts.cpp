// SPDX-License-Identifier: Apache-2.0
#include "tools/strata/job_hosts.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/option_flags.hpp"
#include "strata/error.hpp"
#include "tools/strata/nodes/local_nodes.hpp"
#include "tools/strata/nodes/remote_nodes.hpp"

namespace strata::launcher {

job_hosts::job_hosts(event_loop& loop, children& processes, node_listener& listener,
                     const run_request& what, job_description job,
                     const std::vector<placed_host>& hosts)
    : loop_(loop),
      processes_(processes),
      listener_(listener),
      what_(what),
      job_(std::move(job)),
      folder_(std::filesystem::current_path(no_folder_).string()) {
  for (const placed_host& where : hosts) add(where);
}

void job_hosts::add(const placed_host& where) {
  std::unique_ptr<host_nodes> nodes;
  if (where.local) {
    nodes = std::make_unique<local_nodes>(loop_, processes_, listener_, -1);
  } else {
    require_folder();
    nodes =
        std::make_unique<remote_nodes>(loop_, processes_, listener_, where.name, remote_command());
  }
  hosts_.push_back({std::move(nodes), where});
}

// A job of this machine does without.
void job_hosts::require_folder() const {
  if (!no_folder_) return;
  throw user_error("cannot find the folder that nodes of other hosts begin in: " +
                   no_folder_.message());
}

void job_hosts::start_on(const one_host& h, start_request request) const {
  request.program = what_.program;
  request.arguments = what_.arguments;
  request.variables = what_.variables;
  request.directory = h.where.local ? "" : folder_;
  request.job.bind_address = h.where.bind_address;
  if (request.workers == 0) request.workers = what_.workers;
  request.bind = what_.bind.value_or(true);
  // What is said to the launcher beats a variable of the user's, a file, and -x.
  if (request.workers != 0) {
    request.variables.push_back(variable_of("workers") + "=" + std::to_string(request.workers));
  }
  if (what_.bind) request.variables.push_back(variable_of("bind") + (*what_.bind ? "=yes" : "=no"));
  request.print_binding = what_.print_binding;
  request.capture_output = what_.prefix;
  h.nodes->start(request);
}

void job_hosts::start() {
  // A start that fails here fails before another host has heard of it.
  for (const bool local : {true, false}) {
    for (const one_host& h : hosts_) {
      if (h.where.local == local) start_on(h, {.job = job_, .nodes = h.where.nodes});
    }
  }
}

// Here, if that is wished and there is such a host already.
std::vector<job_hosts::one_host>::iterator job_hosts::local_host(const join_request& what) {
  if (!what.host.empty()) return hosts_.end();
  return std::find_if(hosts_.begin(), hosts_.end(),
                      [](const one_host& h) { return h.where.local; });
}

placed_host job_hosts::new_host(const join_request& what) const {
  std::vector<placed_host> present;
  for (const one_host& h : hosts_) present.push_back(h.where);
  return place_late(what, what_.transport, present);
}

void job_hosts::check(const join_request& what) {
  if (local_host(what) == hosts_.end() && !new_host(what).local) require_folder();
  if (!what.host.empty()) (void)remote_command();
}

// Nodes that come here share memory with those that are here; elsewhere the nodes of one request
// share memory with each other only, and are a host of their own.
std::uint16_t job_hosts::host_for(late_wish& wish) {
  if (wish.host && hosts_[*wish.host].nodes->any_running()) return *wish.host;
  auto found = local_host(wish.what);
  if (found == hosts_.end()) {
    add(new_host(wish.what));
    found = hosts_.end() - 1;
  }
  wish.host = static_cast<std::uint16_t>(found - hosts_.begin());
  return *wish.host;
}

late_place job_hosts::start_late(node_id node, late_wish& wish, const std::vector<node_id>& gone) {
  job_.host_of.resize(node + 1U);
  const std::uint16_t number = job_.host_of[node] = host_for(wish);
  --wish.what.nodes;
  start_request request{
      .job = job_, .nodes = {node}, .workers = wish.what.workers, .expected = wish.what.nodes};
  request.job.nodes = static_cast<node_id>(node + 1);
  request.job.late = true;
  request.job.left = gone;
  start_on(hosts_[number], std::move(request));
  const placed_host& where = hosts_[number].where;
  return {number, where.local && hosts_.size() == 1 ? std::string() : " on " + where.name};
}

void job_hosts::send(node_id node, const std::string& frame_bytes) {
  hosts_[job_.host_of[node]].nodes->send(node, frame_bytes);
}

void job_hosts::end(node_id node) { hosts_[job_.host_of[node]].nodes->end(node); }

// By index: a host that is lost with the signal may make room for another one.
void job_hosts::signal(int number) {
  for (std::size_t h = 0; h < hosts_.size(); ++h) hosts_[h].nodes->signal(number);
}

void job_hosts::signal_others(int number) {
  for (std::size_t h = 0; h < hosts_.size(); ++h) hosts_[h].nodes->signal_others(number);
}

void job_hosts::pause_output(bool paused) {
  for (const one_host& h : hosts_) h.nodes->pause_output(paused);
}

std::int64_t job_hosts::deadline_ns() const noexcept {
  std::int64_t first_ns = no_deadline;
  for (const one_host& h : hosts_) first_ns = std::min(first_ns, h.nodes->deadline_ns());
  return first_ns;
}

// By index, as in signal().
void job_hosts::on_time(std::int64_t now_ns) {
  for (std::size_t h = 0; h < hosts_.size(); ++h) hosts_[h].nodes->on_time(now_ns);
}

}  // namespace strata::launcher
