// SPDX-License-Identifier: Apache-2.0
// How a node begins: from its end of the launcher's line to one that has its threads and is
// connected to all others; or how it ends before that, when it cannot.
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/with_threads.hpp"
#include "cluster/engine/engine.hpp"
#include "cluster/engine/program_build.hpp"
#include "cluster/opening/transports.hpp"
#include "os/own_thread.hpp"
#include "os/slice.hpp"
#include "strata/error.hpp"

namespace strata::cluster {
namespace {

std::uint64_t seed_of(const launch::job_description& job) { return job.job ^ (job.node + 1U); }

reception reception_of(const options& settings) {
  return settings.reception == "polling"    ? reception::polling
         : settings.reception == "watchdog" ? reception::watchdog
         : settings.reception == "blocking" ? reception::blocking
                                            : reception::adaptive;
}

std::vector<node_id> others_of_host(const launch::job_description& job) {
  std::vector<node_id> near;
  for (unsigned n = 0; n < job.nodes; ++n) {
    if (n != job.node && job.host_of.at(n) == job.host_of.at(job.node))
      near.push_back(static_cast<node_id>(n));
  }
  return near;
}

membership first_members(const launch::job_description& job) {
  if (!job.elastic) return {job.node, job.nodes, others_of_host(job)};
  return {job.node, {job.capacity, job.nodes, job.founders}, job.left, others_of_host(job)};
}

std::string name_of(node_id node) { return "node " + std::to_string(node); }

}  // namespace

engine::engine(detail::scheduler& workers, std::unique_ptr<launch::control_line> line,
               const options& settings, visiting_protocol& visitor)
    : workers_(workers),
      settings_(settings),
      line_(std::move(line)),
      self_(line_->job().node),
      nodes_(line_->job().capacity),
      members_(first_members(line_->job())),
      ways_(self_, nodes_),
      visitor_(visitor),
      network_worker_(workers.depot),
      rules_(reception_of(settings), std::int64_t{settings.watchdog_us} * 1000),
      departures_(nodes_) {
  const connections joined = with_threads(name_of(self_), [this] { return open_connections(); });
  order_others();
  make_protocols();
  introduce_network_worker();
  watch_for_stalls();
  meet_workers(joined);
  with_threads(name_of(self_), [this] { begin(); });
  // The workers have fallen asleep before there was anybody to ask.
  want_work();
}

connections engine::open_connections() {
  connections joined = open_transports(*line_, settings_, program_build());
  transports_ = std::move(joined.transports);
  on_networks_ = std::move(joined.networks);
  network_names_ = std::move(joined.network_names);
  who_ = std::move(joined.who);
  ways_ = std::move(joined.ways);
  door_ = std::move(joined.door);
  std::vector<net::transport*> all;
  for (const auto& t : transports_) all.push_back(t.get());
  links_ = std::make_unique<links>(self_, all, ways_,
                                   links::traits{line_->job().elastic, joined.plan.has_value()});
  links_->tell_of_congestion(visitor_);
  for (const node_id n : joined.better_by_spare) links_->begin_with_spare(n);
  is_gateway_ = ways_.is_gateway();
  if (joined.plan) {
    told_ = std::move(joined.told);
    reopening_ = std::move(joined.again);
    networks_ = std::make_unique<named_networks>(
        *this, members_, *links_, *this,
        named_networks::beginning{
            .plan = std::move(*joined.plan),
            .told = told_,
            .remeasure_every_ns = std::int64_t{settings_.remeasure_s} * 1'000'000'000,
            .mends = reopening_ ? std::optional(mending::settings{}) : std::nullopt},
        *this);
  }
  return joined;
}

void engine::order_others() {
  for (const node_id n : line_->job().left) never_came(n);
  for (const node_id n : members_.all()) {
    if (n != self_) farthest_first_.push_back(n);
  }
  std::stable_sort(farthest_first_.begin(), farthest_first_.end(),
                   [this](node_id a, node_id b) { return ways_.to(a).hops > ways_.to(b).hops; });
}

void engine::make_protocols() {
  const launch::job_description& job = line_->job();
  stealing_settings s;
  s.how = balancing_of(settings_.balancing);
  s.seed = seed_of(job);
  shelving_settings on_shelf;
  // A node whose idle neighbours wait to be sent something offers nothing.
  on_shelf.offered_max = s.how == balancing::sender ? 0 : settings_.shelf;
  if (!transports_.empty() && (members_.nears() != 0 || job.elastic))
    on_shelf.shelves = transports_.front()->shelves_of_host();
  protocols_ = std::make_unique<protocols>(
      *this, *this, *this, s, std::int64_t{settings_.lost_after_ms} * 1'000'000,
      [this](node_id node, const std::string& why) { believe_loss(node, why); }, on_shelf,
      &visitor_);
  membership_protocol_ = std::make_unique<membership_protocol>(*this, members_, protocols_->counts,
                                                               protocols_->quiet, *this);
  std::vector<bool> same_host(nodes_);
  for (unsigned n = 0; n < job.nodes; ++n)
    same_host[n] = job.host_of.at(n) == job.host_of.at(self_);
  visitor_.join(*this, *this, protocols_->counts, same_host);
}

void engine::introduce_network_worker() {
  network_worker_.owner = &workers_;
  network_worker_.node = self_;
  network_worker_.nodes = static_cast<node_id>(members_.begun());
  hungry = &protocols_->wanted.reasons();
  workers_look = &rules_.workers_look();
}

void engine::watch_for_stalls() {
  stalls_ = std::make_unique<stall_watch>(
      *this, *this, protocols_->counts, protocols_->quiet, *this,
      stall_watch::settings{.after_ns = std::int64_t{settings_.stall_s} * 1'000'000'000,
                            .deaf_while_busy = rules_.how() == reception::polling});
}

void engine::meet_workers(const connections& joined) {
  const std::lock_guard handling(inbox_);
  if (nodes_ > 1)
    workers_.join(*this, protocols_->data, self_, static_cast<node_id>(members_.begun()));
  hear(joined);
}

// Where this host has no other node, and none can come, the program's thread may go where it likes,
// as without a launcher.
void engine::bind_program() {
  const std::vector<int>& cpus = line_->job().cpus;
  if (!cpus.empty() && settings_.bind && (members_.nears() != 0 || members_.is_elastic()))
    program_cores_.bind(cpus);
}

void engine::come_if_late() {
  if (!line_->job().late) return;
  const std::lock_guard handling(inbox_);
  membership_protocol_->come();
}

void engine::begin() {
  try {
    start_threads();
    // Not before the threads above are made, which may run anywhere.
    bind_program();
    workers_.count_frames_of(&network_worker_);
    come_if_late();
  } catch (...) {
    give_up_beginning();
    throw;
  }
}

void engine::start_threads() {
  for (const auto& t : transports_) {
    threads_.emplace_back([this, &t] {
      const os::own_thread here("strata-receive");
      os::prefer_short_turns();  // others wait for its answers
      run_receiver(*t);
    });
    threads_.emplace_back([this, &t] {
      const os::own_thread here("strata-send");
      os::prefer_short_turns();
      links_->run_sender(*t);
    });
  }
  if (reopening_ != nullptr) reopening_->begin(*this);
  // Last: only the line's end ends it, and the launcher would hear that this node has done all.
  line_thread_ = std::thread([this] { watch_line(); });
}

// The threads that have been made see the node, and others may have sent work already: that ends as
// after a loss, but nobody is told. The process ends, and its launcher says so.
void engine::give_up_beginning() {
  {
    const std::lock_guard handling(inbox_);
    if (!broken_.load(
            std::memory_order_seq_cst)) {  // else another loss is there, which may be read
      broken_by_ = self_;
      loss_ = std::make_exception_ptr(
          node_lost_error(self_, "node " + std::to_string(self_) + " ends before it has begun"));
      broken_.store(true, std::memory_order_seq_cst);
    }
    protocols_->failed.keep_silent();
    stalls_->stop();
    for (const node_id n : others()) links_->on_lost(n);
    links_->stop_waiting();
    if (networks_ != nullptr) networks_->give_up();
    protocols_->data.lose(loss_);
    protocols_->visitor->on_lost(loss_);
  }
  departures_.tell([](departures::known& k) { k.gave_up_waiting = true; });
  workers_.wait_idle(detail::scheduler::waits::for_times);
  (void)workers_.take_failure();
  workers_.count_frames_of(nullptr);
  stop_threads();
}

void engine::watch_line() {
  const os::own_thread here("strata-job");
  const auto with_inbox = [this](auto&& what) {
    const std::lock_guard handling(inbox_);
    what();
  };
  launch::job_news news{[&](node_id node, const std::string& why) {
    departures_.launcher_tells_of(node);
    with_inbox([&] { lose(node, why); });
  }};
  if (members_.is_elastic()) {
    news.admit = [this](node_id node, std::uint16_t host, const launch::address& where) {
      admit(node, host, where);
    };
    news.leave = [&] { with_inbox([this] { ask_to_leave(); }); };
    news.go = [&] { with_inbox([this] { membership_protocol_->part(); }); };
  }
  const bool launcher_is_gone = line_->wait(news);
  if (!launcher_is_gone || stopping_.load(std::memory_order_seq_cst)) return;
  std::fprintf(stderr, "strata: node %u ends: the launcher is gone\n", unsigned{self_});
  ::_exit(1);
}

}  // namespace strata::cluster
