// SPDX-License-Identifier: Apache-2.0
#include "sim/simulated_node.hpp"

#include <algorithm>
#include <utility>

#include "sched/scheduler.hpp"
#include "sim/simulated_job.hpp"

namespace strata::sim {
namespace {

cluster::stealing_settings stealing_of(const job_model& m, world& w) {
  cluster::stealing_settings s;
  s.how = m.how;
  s.seed = w.random.next();
  return s;
}

// As a node sees it that begins with the job, or comes to it when its number is the next.
cluster::membership members_of(const job_model& m, node_id self, const std::vector<node_id>& left) {
  if (m.founders == 0) return {self, m.nodes, {}};
  const node_id begun = std::max(m.founders, static_cast<node_id>(self + 1));
  return {self, {m.nodes, begun, m.founders}, left, {}};
}

}  // namespace

simulated_node::simulated_node(job& j, node_id self)
    : job_(j),
      self_(self),
      members_(members_of(j.model, self, j.left_)),
      known_(j.model.nodes),
      hosts_(j.model.nodes),
      first_(*j.wires_[0], self, *this),
      transfers(j, self),
      protocols(
          *this, *this, j.in, stealing_of(j.model, j.in),
          j.model.lost_after_ns != 0 ? j.model.lost_after_ns : INT64_MAX,
          [this](node_id node, const std::string& why) { believe_loss(node, why); }, {},
          &messenger),
      membership_protocol(*this, members_, protocols.counts, protocols.quiet, *this),
      stalls(*this, *this, protocols.counts, protocols.quiet, j.in,
             {.after_ns = j.model.stalls_after_ns, .deaf_while_busy = !j.model.answers_while_busy}),
      worker_(std::make_unique<detail::place>(j.frames_->depot, *j.frames_, 0)) {
  for (unsigned n = 0; n < members_.begun(); ++n) {
    known_[n] = members_.of(static_cast<node_id>(n)) != cluster::standing::left;
    hosts_[n] = j.host_of_[n];
  }
  worker_->node = self;
  worker_->nodes.store(static_cast<node_id>(members_.begun()), std::memory_order_relaxed);
  worker_->others = &protocols.data;
  worker_->failed = &failing_;
  worker_->exceptions = detail::exceptions_here();
  worker_->native = j.outside_;
  // As if each were on a host of its own.
  messenger.join(*this, *this, protocols.counts, std::vector<bool>(j.model.nodes));
  if (j.model.spares) second_.emplace(*j.wires_[1], self, *this);
}

// Nothing is said before, but what measures the networks.
void simulated_node::make_links() {
  std::vector<net::transport*> all{&first_};
  if (second_) all.push_back(&*second_);
  const bool by_networks = job_.model.links != nullptr;
  cluster::routes ways(self_, nodes());
  if (by_networks) {
    costs_ = {cluster::with_newer(job_.measured_, job_.plan_.measured, job_.host_of_),
              job_.host_of_};
    ways = job_.plan_.ways(self_, nodes(), [this](node_id a, node_id b) { return cost(a, b); });
  }
  links_.emplace(self_, all, ways, cluster::links::traits{job_.model.founders != 0, by_networks});
  links_->tell_of_congestion(messenger);
  if (job_.model.lost_after_ns != 0 && !by_networks) beat();
  if (stalls.look_ns() != INT64_MAX) look_for_stall();
}

simulated_node::~simulated_node() {
  for (const auto* queue : {&ready_, &tokens_}) {
    for (detail::task* const t : *queue) {
      if (t->type->abandon != nullptr) t->type->abandon(*t, *worker_);
    }
  }
}

node_id simulated_node::nodes() const noexcept { return job_.model.nodes; }

// ---- the worker ----

void simulated_node::run_soon(detail::task* t) {
  if (queues) queues();
  ready_.push_back(t);
  wake();
}

void simulated_node::wake() {
  if (busy_ || (crashed_ && !ends_threads_)) return;
  busy_ = true;
  job_.in.at(job_.in.now_ns(), [this] { step(); });
}

void simulated_node::step() {
  if (crashed_ && !ends_threads_) return;
  detail::task* t = nullptr;
  if (!ready_.empty()) {
    t = ready_.front();
    ready_.pop_front();
  } else if (!tokens_.empty()) {
    t = tokens_.back();
    tokens_.pop_back();
  }
  if (t == nullptr) {
    busy_ = false;
    if (crashed_) return;
    protocols.balance.want_work();
    protocols.quiet.node_is_idle();
    return;
  }
  if (t->type->wire != nullptr) protocols.balance.begins_token();
  const std::int64_t cost = job_.model.cost(*t);
  ++tasks_;
  // What it sends leaves when it ends.
  local_now_ = job_.in.now_ns() + cost;
  runs_task_ = true;
  as_worker([&] { run(*t); });
  runs_task_ = false;
  if (protocols.balance.hungry() && !tokens_.empty())
    as_worker([&] { protocols.balance.feed(*worker_); });
  job_.in.at(local_now_, [this] { step(); });
}

void simulated_node::be_in_call(bool is) {
  in_call_ = is;
  if (!is) protocols.quiet.node_is_idle();
}

void simulated_node::as_worker(const std::function<void()>& f) {
  const as_its_worker here(*this);
  f();
}

void simulated_node::take_what_was_pushed() {
  while (detail::task* const t = worker_->ready.pop()) ready_.push_back(t);
  while (worker_->has_bound()) {
    if (detail::task* const t = worker_->next_bound()) ready_.push_back(t);
  }
  // Popped newest first.
  std::vector<detail::task*> pushed;
  while (detail::task* const t = worker_->pop()) pushed.push_back(t);
  for (auto t = pushed.rbegin(); t != pushed.rend(); ++t)
    ((*t)->type->wire != nullptr ? tokens_ : ready_).push_back(*t);
}

detail::task* simulated_node::take_travelling() {
  if (tokens_.empty()) return nullptr;
  detail::task* const t = tokens_.front();
  tokens_.pop_front();
  return t;
}

void simulated_node::fail(std::exception_ptr error) {
  if (job_.failure_ == nullptr) job_.failure_ = error;
  if (failing_.exchange(true) || !protocols.failed.tell(error)) return;
  job_.in.at(job_.in.now_ns(), [this] { protocols.failed.settle(); });
}

void simulated_node::settle(bool forget) {
  if (forget && failing_) dead_frames_ = worker_->events.frames();
  failing_ = false;
  if (!forget && job_.when_settled) job_.when_settled();
}

// ---- the network ----

void simulated_node::post(node_id to, cluster::kind k, std::span<const std::byte> head,
                          std::span<const std::byte> body) {
  if (crashed_) return;
  if (says) says(to, k);
  if (runs_task_ && job_.model.answers_while_busy) {
    const auto when_it_ends = [this, to, m = cluster::copy_of(k, head, body)] {
      if (!crashed_) post(to, m.k, m.payload, {});
    };
    return job_.in.at(local_now_, when_it_ends);
  }
  if (!links_->is_lost(to) && links_->post(to, k, head, body)) return;
  if (job_.model.founders == 0 || !can_be_kept_back(k)) return;
  job_.in.at(job_.in.now_ns(), [this, to, m = cluster::copy_of(k, head, body)] {
    as_worker([&] { protocols.give_up(to, m); });
    protocols.quiet.node_is_idle();  // if it still is: the counts are others
  });
}

void simulated_node::receive(node_id from, cluster::kind k, std::span<const std::byte> payload) {
  try {
    handle(from, k, payload);
  } catch (const cluster::malformed& e) {
    lose(from, std::string("it has sent nonsense: ") + e.what());
  } catch (...) {
    fail(std::current_exception());
    if (cluster::carries_work(k)) protocols.counts.received.fetch_add(1, std::memory_order_relaxed);
  }
}

void simulated_node::handle(node_id from, cluster::kind k, std::span<const std::byte> payload) {
  const as_its_worker here(*this);
  if (hears && k != cluster::kind::forward && !cluster::comes_too_late(k, broken_) &&
      hears(from, k, payload))
    return;
  cluster::handle(from, k, payload,
                  {protocols, stalls, membership_protocol, networks ? &*networks : nullptr, *links_,
                   members_, broken_},
                  *this);
}

}  // namespace strata::sim
