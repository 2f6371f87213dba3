// SPDX-License-Identifier: Apache-2.0
#include "sim/simulated_node.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "cluster/forwarding.hpp"
#include "sched/scheduler.hpp"

namespace strata::sim {
namespace {

options one_quiet_worker() {
  options o;
  o.workers = 1;
  o.bind = false;
  // Its worker is not woken by what becomes ready on simulated ones.
  o.policy = "locked";
  return o;
}

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

std::unique_ptr<wires> wires_of(world& w, const job_model& m) {
  return std::make_unique<wires>(w, wires::settings{.channel = m.channel,
                                                    .credits_bytes = m.credits_bytes,
                                                    .staged_ns = m.staged_ns,
                                                    .may_break = m.links != nullptr});
}

constexpr std::int64_t leave_every_ns = 50'000;

}  // namespace

job::job(world& w, const job_model& m)
    : in(w),
      model(m),
      wires_{wires_of(w, m), m.spares ? wires_of(w, m) : nullptr},
      host_of_(m.nodes),
      plan_(cluster::first_plan(m.founders != 0 ? m.founders : m.nodes)),
      frames_(std::make_unique<detail::scheduler>(one_quiet_worker())) {
  frames_->deadlines.go_by(*this);
  std::iota(host_of_.begin(), host_of_.end(), std::uint16_t{0});
  for (unsigned n = 0; n < plan_.members.size(); ++n)
    nodes_.push_back(std::make_unique<simulated_node>(*this, static_cast<node_id>(n)));
  if (m.measures) {
    measuring_ = beginnings_ = nodes_.size();
    measured_.resize(nodes_.size());
    for (auto& n : nodes_) n->measure();
    return;
  }
  for (auto& n : nodes_) n->make_links();
  if (m.links) {
    for (auto& n : nodes_) n->begin_to_reroute();
  }
  // Everybody begins with nothing to do.
  for (auto& n : nodes_) n->protocols.balance.want_work();
}

job::~job() = default;

simulated_node::simulated_node(job& j, node_id self)
    : job_(j),
      self_(self),
      members_(members_of(j.model, self, j.left_)),
      known_(j.model.nodes),
      first_(*j.wires_[0], self, *this),
      transfers(j, self),
      protocols(
          *this, *this, j.in, stealing_of(j.model, j.in),
          j.model.lost_after_ns != 0 ? j.model.lost_after_ns : INT64_MAX,
          [this](node_id node, const std::string& why) { lose(node, why); }, {}, &messenger),
      roster(*this, members_, protocols.counts, protocols.quiet, *this),
      stalls(*this, *this, protocols.counts, protocols.quiet, j.in,
             {.after_ns = j.model.stalls_after_ns, .deaf_while_busy = !j.model.answers_while_busy}),
      worker_(std::make_unique<detail::place>(j.frames_->depot, *j.frames_, 0)) {
  for (unsigned n = 0; n < members_.begun(); ++n)
    known_[n] = members_.of(static_cast<node_id>(n)) != cluster::standing::left;
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
  links_.emplace(self_, all,
                 by_networks ? ways_of(self_, job_.plan_) : cluster::routes(self_, nodes()),
                 cluster::links::traits{job_.model.founders != 0, by_networks});
  if (job_.model.lost_after_ns != 0) beat();
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
  (t->type->wire != nullptr ? tokens_ : ready_).push_back(t);
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
  busy_ns_ += cost;
  // What it sends leaves when it ends.
  local_now_ = job_.in.now_ns() + cost;
  runs_task_ = true;
  as_worker([&] { run(*t); });
  runs_task_ = false;
  if (protocols.balance.hungry() && !tokens_.empty()) protocols.balance.feed(*worker_);
  job_.in.at(local_now_, [this] { step(); });
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
  failing_ = false;
  if (!forget && job_.when_settled) job_.when_settled();
}

// ---- the network ----

void simulated_node::post(node_id to, cluster::kind k, std::span<const std::byte> head,
                          std::span<const std::byte> body) {
  if (crashed_) return;
  if (runs_task_ && job_.model.answers_while_busy) {
    const auto when_it_ends = [this, to, m = cluster::copy_of(k, head, body)] {
      if (!crashed_) post(to, m.k, m.payload, {});
    };
    return job_.in.at(local_now_, when_it_ends);
  }
  if (!links_->is_lost(to) && links_->post(to, k, head, body)) return;
  if (job_.model.founders == 0 || !can_be_kept_back(k)) return;
  job_.in.at(job_.in.now_ns(), [this, m = cluster::copy_of(k, head, body)] {
    give_up(m);
    protocols.quiet.node_is_idle();  // if it still is: the counts are others
  });
}

// It was for a node that has left.
void simulated_node::give_up(const cluster::message_copy& m) {
  if (m.k == cluster::kind::tokens)
    protocols.balance.take_back(cluster::reader(m.payload));
  else if (carries_work(m.k))
    protocols.counts.received.fetch_add(1, std::memory_order_seq_cst);
}

void simulated_node::receive(node_id from, cluster::kind k, std::span<const std::byte> payload) {
  try {
    handle(from, k, payload);
  } catch (...) {
    fail(std::current_exception());
    if (cluster::carries_work(k)) protocols.counts.received.fetch_add(1, std::memory_order_relaxed);
  }
}

void simulated_node::handle(node_id from, cluster::kind k, std::span<const std::byte> payload) {
  if (k == cluster::kind::forward) return pass_on(payload);
  if (broken_ && k < cluster::kind::failed && k != cluster::kind::hold) return;
  const as_its_worker here(*this);
  cluster::reader r(payload);
  (void)((hears && hears(from, k, payload)) || protocols.on_message(from, k, payload) ||
         stalls.on_message(from, k, r) ||
         (members_.is_elastic() && roster.on_message(from, k, r)) ||
         (rerouting && rerouting->on_message(from, k, r)) ||
         (detours && detours->on_message(from, k, r)) || on_word_to_links(from, k, r) ||
         (remeasuring && remeasuring->on_message(from, k, r, job_.in.now_ns())));
}

// For this node, or for one further on.
void simulated_node::pass_on(std::span<const std::byte> payload) {
  const cluster::forwarded f =
      cluster::take_forwarded(cluster::reader(payload), self_, job_.model.nodes);
  if (members_.of(f.what.source) == cluster::standing::absent)
    throw cluster::malformed("something to forward of a node that there is not");
  if (f.what.destination != self_) {
    if (members_.of(f.what.source) != cluster::standing::left || links_->knows(f.what.ways))
      links_->forward(f.what, f.payload);
    return;
  }
  protocols.life.heard_of(f.what.source);
  const auto inner = static_cast<cluster::kind>(f.what.kind);
  if (rerouting && rerouting->keeps(f.what.source, f.what.ways, inner, f.payload)) return;
  receive(f.what.source, inner, f.payload);
}

// ---- before the job begins ----

void simulated_node::measure() {
  survey_ = std::make_unique<cluster::survey>(*this, measured_here(), job_.in.now_ns(),
                                              cluster::survey::limits{});
  job_.in.at(job_.in.now_ns(), [this] { go_on_measuring(); });
}

void simulated_node::go_on_measuring() {
  if (survey_ == nullptr || has_measured_ || crashed_) return;
  const std::int64_t next_ns = survey_->go_on(job_.in.now_ns());
  if (!survey_->is_done()) return job_.in.at(next_ns, [this] { go_on_measuring(); });
  has_measured_ = true;
  std::vector<launch::measured_link> all;
  for (const cluster::survey::result& r : survey_->results()) all.push_back(r.over(0));
  job_.measured(self_, std::move(all));
}

bool simulated_node::try_post(node_id to, cluster::kind k, std::span<const std::byte> head,
                              std::span<const std::byte> body) {
  const auto outcome = first_.try_send(to, cluster::header_of(self_, to, k), head, body);
  return outcome == net::send_outcome::sent || outcome == net::send_outcome::staged;
}

// The launcher tells all, who hear it one after the other.
void job::measured(node_id n, std::vector<launch::measured_link> what) {
  measured_[n] = std::move(what);
  if (--measuring_ != 0) return;
  for (const auto& node : nodes_) {
    const auto takes_ns = static_cast<std::int64_t>(in.random.below(200'000));
    in.at(in.now_ns() + takes_ns, [node = node.get()] { node->begin(); });
  }
}

void simulated_node::begin() {
  make_links();
  begin_to_reroute();
  survey_.reset();
  --job_.beginnings_;
  for (const auto& [h, payload] : std::exchange(early_, {})) on_message(h, payload);
  protocols.balance.want_work();
}

// ---- other ways ----

void simulated_node::begin_to_reroute() {
  rerouting.emplace(*this, job_.plan_, *this);
  detours.emplace(self_, nodes(), job_.plan_.cuts, *this);
  for (unsigned i = 0; i < nodes(); ++i) {
    const auto n = static_cast<node_id>(i);
    if (n != self_) links_->change_way(n, rerouting->to(n).next, job_.plan_.number, {});
  }
  if (job_.model.measures_again_ns == 0) return;
  cluster::believed_costs costs([](node_id n) { return n; });
  for (std::size_t n = 0; n < job_.measured_.size(); ++n) {
    for (const launch::measured_link& m : job_.measured_[n])
      costs.begin_with({static_cast<node_id>(n), m});
  }
  remeasuring.emplace(*this, *this, std::move(costs), job_.model.measures_again_ns,
                      job_.in.now_ns());
  measure_again();
}

void simulated_node::measure_again() {
  if (parted_ || crashed_) return;
  (void)remeasuring->on_time(job_.in.now_ns());
  job_.in.at(job_.in.now_ns() + 500'000, [this] { measure_again(); });
}

std::vector<node_id> simulated_node::measured_here() {
  std::vector<node_id> others;
  for (const node_id other : members_.all()) {
    const bool is_cut = detours && detours->is_cut(other);
    if (cluster::measures(self_, other) && job_.model.links(self_, other) && !is_cut)
      others.push_back(other);
  }
  return others;
}

std::optional<std::uint16_t> simulated_node::network_to(node_id n) {
  return members_.has(n) ? std::optional<std::uint16_t>(0) : std::nullopt;
}

cluster::routes simulated_node::ways_by(const cluster::way_plan& p) { return ways_of(self_, p); }

cluster::routes simulated_node::ways_of(node_id n, const cluster::way_plan& p) {
  const cluster::link_costs costs(cluster::with_newer(job_.measured_, p.measured, job_.host_of_),
                                  job_.host_of_);
  return p.ways(n, nodes(), [&](node_id a, node_id b) -> std::optional<cluster::link> {
    const auto nominal = known_[a] && known_[b] ? job_.model.links(a, b) : std::nullopt;
    const auto measured = costs.between(a, b, 0);
    return nominal && measured ? measured : nominal;
  });
}

void simulated_node::change_way(node_id n, node_id next, std::uint32_t table, bool says_so) {
  links_->change_way(n, next, table,
                     says_so ? std::as_bytes(std::span(&table, 1)) : std::span<const std::byte>{});
}

void simulated_node::on_kept(node_id n, cluster::kind k, std::span<const std::byte> payload) {
  receive(n, k, payload);
}

void simulated_node::on_changed(const cluster::way_plan& p) { job_.plan_ = p; }

void simulated_node::let_come(node_id n) { job_.let_in(n); }

void simulated_node::crash() {
  crashed_ = true;
  first_.crash();
  if (second_) second_->crash();
  if (threads_ == 0 && stacks_.empty()) return;
  ends_threads_ = true;
  break_off(std::make_exception_ptr(node_lost_error(self_, "has crashed")));
}

void simulated_node::beat() {
  if (crashed_ || parted_) return;
  protocols.life.beat(true);
  if (detours) look_after_connections();
  job_.in.at(job_.in.now_ns() + protocols.life.beat_ns(), [this] { beat(); });
}

// ---- stalls ----

void simulated_node::look_for_stall() {
  if (crashed_ || parted_) return;
  stalls.on_time();
  // As the engine's receiver, which has other things to do as well.
  const auto late_ns = static_cast<std::int64_t>(
      job_.in.random.below(static_cast<std::uint64_t>(stalls.look_ns() / 4 + 1)));
  job_.in.at(job_.in.now_ns() + stalls.look_ns() / 4 + late_ns, [this] { look_for_stall(); });
}

cluster::stall_watch::observation simulated_node::observe() {
  return {is_idle(), tasks_ + protocols.counts.received.load(std::memory_order_relaxed)};
}

cluster::stall_watch::waits simulated_node::who_waits_here() {
  using waits = cluster::stall_watch::waits;
  bool for_others = protocols.data.awaits_something() || !messenger.describe_waits().empty();
  for (const auto& [what, for_the_world] : waiting) {
    if (for_the_world) return waits::for_the_world;
    for_others = true;
  }
  return for_others ? waits::for_others : waits::for_nothing;
}

std::string simulated_node::describe_waits_here() {
  std::string text = "strata: node " + std::to_string(self_) + "\n";
  for (const auto& [what, for_the_world] : waiting) text += "  a thread waits for " + what + "\n";
  return text + protocols.data.describe_waits() + messenger.describe_waits() +
         links_->describe_waits();
}

// As the engine's receiver, when it has dealt with what has come.
void simulated_node::answer_soon() {
  const auto late_ns = static_cast<std::int64_t>(
      job_.in.random.below(static_cast<std::uint64_t>(job_.model.stalls_after_ns / 32 + 1)));
  job_.in.at(job_.in.now_ns() + late_ns, [this] {
    if (!crashed_ && !parted_) stalls.send_answer();
  });
}

void simulated_node::tell_of_stall(const std::string& report) {
  if (job_.when_stalled) job_.when_stalled(report);
}

void simulated_node::lose(node_id node, const std::string& why) {
  links_->on_lost(node);
  if (members_.of(node) == cluster::standing::left || !losses_.emplace(node, why).second) return;
  links_->stop_holding();
  stalls.stop();
  protocols.balance.on_lost(node);
  protocols.life.tell(node, why);
  transfers.lose(node);
  if (job_.model.breaks_off) break_off(std::make_exception_ptr(node_lost_error(node, why)));
}

void simulated_node::break_off(const std::exception_ptr& loss) {
  const as_its_worker here(*this);
  broken_ = true;
  protocols.data.lose_calls(loss);
  messenger.on_lost(loss);
}

// ---- nodes that come and go ----

void job::change(std::function<void()> begin) {
  changes_.push_back(std::move(begin));
  if (changes_.size() == 1) changes_.front()();
}

void job::changed() {
  changes_.pop_front();
  if (!changes_.empty()) changes_.front()();
}

void job::come(std::function<void(node_id)> done, std::function<void(node_id)> refused) {
  change([this, done = std::move(done), refused = std::move(refused)] {
    const auto n = static_cast<node_id>(nodes_.size());
    for (const auto& member : nodes_) {
      if (!member->parted_) member->expect(n);
    }
    when_done_[n] = [this, done, n] {
      changed();
      done(n);
    };
    when_refused_[n] = [this, refused, n] {
      changed();
      refused(n);
    };
    model.links ? node(0).rerouting->ask_to_let_come(n) : let_in(n);
  });
}

void simulated_node::expect(node_id n) {
  members_.expect(n, false);
  // Others may know it before, and say so; there is no scheduler that could be asked.
  worker_->nodes.store(static_cast<node_id>(n + 1), std::memory_order_relaxed);
  known_[n] = true;
  links_->expect(n, n);
  if (rerouting) rerouting->expect(n);
  if (first_.reaches(n)) links_->admit(n, first_);
}

void job::let_in(node_id n) {
  nodes_.push_back(std::make_unique<simulated_node>(*this, n));
  node(n).make_links();
  if (when_made) when_made(n);
  if (model.links) {
    node(n).begin_to_reroute();
    if (node(n).rerouting->ways()->unreachable(n, left_)) return refuse(n);
  }
  in.at(in.now_ns() + 100'000, [this, n] { node(n).roster.come(); });
}

// Its process ends with an error, and the launcher says so to those who know it.
void job::refuse(node_id n) {
  left_.push_back(n);
  node(n).parted_ = true;
  in.at(in.now_ns() + 100'000, [this, n] {
    for (const auto& member : nodes_) {
      if (!member->parted_) member->never_comes(n);
    }
    std::exchange(when_refused_[n], nullptr)();
  });
}

void simulated_node::never_comes(node_id n) {
  members_.set(n, cluster::standing::left);
  on_standing(n);
}

void job::leave(node_id n, std::function<void()> done, std::function<void()> refused) {
  when_done_[n] = [this, done = std::move(done)] {
    changed();
    done();
  };
  when_refused_[n] = std::move(refused);
  if (!node(n).rerouting) return node(n).begin_to_leave();
  node(n).rerouting->ask_to_be_spared();
}

void simulated_node::on_spared(bool is) {
  is ? begin_to_leave() : std::exchange(job_.when_refused_[self_], nullptr)();
}

void simulated_node::on_entered() {
  std::exchange(job_.when_done_[self_], nullptr)();
  if (rerouting) rerouting->offer_to_forward();
  protocols.balance.want_work();
}

void simulated_node::on_standing(node_id n) {
  const as_its_worker here(*this);
  const cluster::standing s = members_.of(n);
  if (s == cluster::standing::left) {
    for (const cluster::message_copy& m : links_->retire(n)) give_up(m);
    links_->forget_words_of(n);
    if (rerouting) rerouting->on_left(n);
    protocols.data.on_left(n);
    messenger.on_left(n);
  }
  if (remeasuring) remeasuring->members_have_changed(job_.in.now_ns());
  protocols.life.members_have_changed();
  stalls.members_have_changed();
  protocols.balance.members_have_changed();
}

void simulated_node::begin_to_leave() {
  const as_its_worker here(*this);
  roster.begin_to_leave();
  messenger.on_leaving();
  try_to_leave();
}

void simulated_node::try_to_leave() {
  if (parted_ || crashed_) return;
  if (!has_asked_to_go_) {
    protocols.balance.hand_over();
    if (nothing_holds()) {
      has_asked_to_go_ = true;
      job_.change([this] { roster.part(); });
    }
  }
  job_.in.at(job_.in.now_ns() + leave_every_ns, [this] { try_to_leave(); });
}

bool simulated_node::nothing_holds() {
  return is_idle() && worker_->frames.live() == 0 && threads_ == 0 && stacks_.empty() &&
         !protocols.balance.is_asking() && !protocols.data.awaits_something() &&
         !messenger.holds_something();
}

void simulated_node::on_stay() {
  has_asked_to_go_ = false;
  job_.changed();
}

void simulated_node::on_parted() {
  parted_ = true;
  job_.left_.push_back(self_);
  std::exchange(job_.when_done_[self_], nullptr)();
}

}  // namespace strata::sim
