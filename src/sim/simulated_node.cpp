// SPDX-License-Identifier: Apache-2.0
#include "sim/simulated_node.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "cluster/forwarding.hpp"
#include "sched/scheduler.hpp"

namespace strata::sim {
namespace {

constexpr std::size_t packet_head_bytes = sizeof(net::header) + 8;

options one_quiet_worker() {
  options o;
  o.workers = 1;
  o.bind = false;
  return o;
}

cluster::routes ways_of(const job_model& m, node_id self) {
  return m.links ? cluster::routes(self, m.nodes, m.links) : cluster::routes(self, m.nodes);
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

constexpr std::int64_t leave_every_ns = 50'000;

}  // namespace

job::job(world& w, const job_model& m)
    : in(w), model(m), frames_(std::make_unique<detail::scheduler>(one_quiet_worker())) {
  for (unsigned n = 0; n < (m.founders != 0 ? m.founders : m.nodes); ++n)
    nodes_.push_back(std::make_unique<simulated_node>(*this, static_cast<node_id>(n)));
  if (m.measures) {
    measuring_ = beginnings_ = nodes_.size();
    measured_.resize(nodes_.size());
    for (auto& n : nodes_) n->measure();
    return;
  }
  // Everybody begins with nothing to do.
  for (auto& n : nodes_) n->protocols.balance.want_work();
}

job::~job() = default;

simulated_node::simulated_node(job& j, node_id self)
    : job_(j),
      self_(self),
      ways_(ways_of(j.model, self)),
      members_(members_of(j.model, self, j.left_)),
      protocols(
          *this, *this, j.in, stealing_of(j.model, j.in),
          j.model.lost_after_ns != 0 ? j.model.lost_after_ns : INT64_MAX,
          [this](node_id node, const std::string& why) { lose(node, why); }, {}, &messenger),
      roster(*this, members_, protocols.counts, protocols.quiet, *this),
      worker_(std::make_unique<detail::place>(j.frames_->depot, *j.frames_, 0)) {
  worker_->node = self;
  worker_->nodes.store(static_cast<node_id>(members_.begun()), std::memory_order_relaxed);
  worker_->others = &protocols.data;
  worker_->failed = &failing_;
  // As if each were on a host of its own.
  messenger.join(*this, *this, protocols.counts, std::vector<bool>(j.model.nodes));
  if (j.model.lost_after_ns != 0) beat();
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
  if (busy_ || crashed_) return;
  busy_ = true;
  job_.in.at(job_.in.now_ns(), [this] { step(); });
}

void simulated_node::step() {
  if (crashed_) return;
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
  as_worker([&] { t->type->run(*t, *worker_); });
  if (protocols.balance.hungry() && !tokens_.empty()) protocols.balance.feed(*worker_);
  job_.in.at(local_now_, [this] { step(); });
}

void simulated_node::as_worker(const std::function<void()>& f) {
  detail::worker* const outer = std::exchange(detail::strata_current_worker, worker_.get());
  f();
  take_what_was_pushed();
  detail::strata_current_worker = outer;
  if (!ready_.empty() || !tokens_.empty()) wake();
}

void simulated_node::take_what_was_pushed() {
  while (detail::task* const t = worker_->ready.pop()) ready_.push_back(t);
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
  if (const auto kept = kept_.find(to); kept != kept_.end() && can_be_kept_back(k)) {
    kept_message m{k, {head.begin(), head.end()}};
    m.payload.insert(m.payload.end(), body.begin(), body.end());
    kept->second.push_back(std::move(m));
    return;
  }
  if (ways_.is_neighbour(to)) return send(to, k, head, body);
  send(ways_.to(to).next, cluster::kind::forward, cluster::forwarding_head(k, self_, to, head),
       body);
}

void simulated_node::send(node_id to, cluster::kind k, std::span<const std::byte> head,
                          std::span<const std::byte> body) {
  std::vector<std::byte> message(sizeof(k) + head.size() + body.size());
  std::memcpy(message.data(), &k, sizeof(k));
  if (!head.empty()) std::memcpy(message.data() + sizeof(k), head.data(), head.size());
  if (!body.empty())
    std::memcpy(message.data() + sizeof(k) + head.size(), body.data(), body.size());
  line_to(to).channel->send(std::move(message), job_.in.now_ns());
  watch(to);
}

simulated_node::line& simulated_node::line_to(node_id other) {
  line& l = lines_[other];
  if (l.channel == nullptr) {
    l.channel = std::make_unique<net::reliable_channel>(
        job_.model.channel,
        net::reliable_channel::hooks{
            [this, other](const net::reliable_channel::packet& p) {
              if (crashed_) return;
              const std::int64_t departs =
                  std::max(job_.in.now_ns(), local_now_) + job_.model.message_ns;
              std::vector<std::byte> copy(p.payload.begin(), p.payload.end());
              // Before the copy moves away: in which order arguments are made nobody says.
              const std::size_t bytes = packet_head_bytes + copy.size();
              job_.in.carry(self_, other, bytes, departs, [this, other, p, copy = std::move(copy)] {
                simulated_node& there = job_.node(other);
                if (there.crashed_ || crashed_) return;
                net::reliable_channel::packet arrived = p;
                arrived.payload = copy;
                there.line_to(self_).channel->on_packet(arrived, job_.in.now_ns());
                there.watch(self_);
              });
            },
            [this, other](std::span<const std::byte> m) { deliver(other, m); }});
  }
  return l;
}

// Plans the next look at what may have to be repeated.
void simulated_node::watch(node_id other) {
  line& l = line_to(other);
  const std::int64_t next = l.channel->on_time(job_.in.now_ns());
  if (next >= l.timer_at) return;
  l.timer_at = next;
  job_.in.at(next, [this, other] {
    if (crashed_) return;
    line_to(other).timer_at = INT64_MAX;
    watch(other);
  });
}

void simulated_node::deliver(node_id from, std::span<const std::byte> message) {
  cluster::kind k{};
  std::memcpy(&k, message.data(), sizeof(k));
  if (survey_ != nullptr) {
    if (survey_->on_message(from, k, cluster::reader(message.subspan(sizeof(k))), job_.in.now_ns()))
      return go_on_measuring();
    early_.emplace_back(from, std::vector(message.begin(), message.end()));
    return;
  }
  protocols.life.heard_of(from);
  try {
    handle(from, k, message.subspan(sizeof(k)));
  } catch (...) {
    fail(std::current_exception());
    if (cluster::carries_work(k)) protocols.counts.received.fetch_add(1, std::memory_order_relaxed);
  }
}

void simulated_node::handle(node_id from, cluster::kind k, std::span<const std::byte> payload) {
  if (k != cluster::kind::forward) {
    (void)(protocols.on_message(from, k, payload) ||
           roster.on_message(from, k, cluster::reader(payload)));
    return;
  }
  const cluster::forwarded f =
      cluster::take_forwarded(cluster::reader(payload), self_, job_.model.nodes);
  if (f.what.destination == self_) {
    protocols.life.heard_of(f.what.source);
    return handle(f.what.source, static_cast<cluster::kind>(f.what.kind), f.payload);
  }
  ++forwarded_;
  send(ways_.to(f.what.destination).next, k, std::as_bytes(std::span(&f.what, 1)), f.payload);
}

// ---- before the job begins ----

void simulated_node::measure() {
  std::vector<node_id> others;
  for (unsigned n = 0; n < job_.model.nodes; ++n) {
    const auto other = static_cast<node_id>(n);
    if (cluster::measures(self_, other) && job_.model.links(self_, other)) others.push_back(other);
  }
  survey_ =
      std::make_unique<cluster::survey>(*this, others, job_.in.now_ns(), cluster::survey::limits{});
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
  send(to, k, head, body);
  return true;
}

// The launcher tells all, who hear it one after the other.
void job::measured(node_id n, std::vector<launch::measured_link> what) {
  measured_[n] = std::move(what);
  if (--measuring_ != 0) return;
  std::vector<std::uint16_t> host_of(nodes_.size());
  std::iota(host_of.begin(), host_of.end(), std::uint16_t{0});
  const auto costs = std::make_shared<cluster::link_costs>(measured_, host_of);
  for (const auto& node : nodes_) {
    const auto takes_ns = static_cast<std::int64_t>(in.random.below(200'000));
    in.at(in.now_ns() + takes_ns, [node = node.get(), costs] { node->begin(*costs); });
  }
}

void simulated_node::begin(const cluster::link_costs& costs) {
  ways_ = cluster::routes(self_, job_.model.nodes,
                          [&](node_id a, node_id b) -> std::optional<cluster::link> {
                            const auto nominal = job_.model.links(a, b);
                            const auto measured = costs.between(a, b, 0);
                            return nominal && measured ? measured : nominal;
                          });
  survey_.reset();
  --job_.beginnings_;
  for (const auto& [from, message] : std::exchange(early_, {})) deliver(from, message);
  protocols.balance.want_work();
}

void simulated_node::crash() { crashed_ = true; }

void simulated_node::beat() {
  if (crashed_ || parted_) return;
  protocols.life.beat(true);
  job_.in.at(job_.in.now_ns() + protocols.life.beat_ns(), [this] { beat(); });
}

void simulated_node::lose(node_id node, const std::string& why) {
  if (!losses_.emplace(node, why).second) return;
  protocols.balance.on_lost(node);
  protocols.life.tell(node, why);
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

void job::come(std::function<void(node_id)> done) {
  change([this, done = std::move(done)] {
    const auto n = static_cast<node_id>(nodes_.size());
    for (const auto& member : nodes_) {
      if (member->parted_) continue;
      member->members_.expect(n, false);
      // Others may know it before, and say so; there is no scheduler that could be asked.
      member->worker_->nodes.store(static_cast<node_id>(n + 1), std::memory_order_relaxed);
      member->kept_[n];
    }
    nodes_.push_back(std::make_unique<simulated_node>(*this, n));
    when_done_[n] = [this, done, n] {
      changed();
      done(n);
    };
    in.at(in.now_ns() + 100'000, [this, n] { node(n).roster.come(); });
  });
}

void job::leave(node_id n, std::function<void()> done) {
  when_done_[n] = [this, done = std::move(done)] {
    changed();
    done();
  };
  node(n).begin_to_leave();
}

void simulated_node::on_entered() {
  std::exchange(job_.when_done_[self_], nullptr)();
  protocols.balance.want_work();
}

void simulated_node::on_standing(node_id n) {
  const cluster::standing s = members_.of(n);
  if (s == cluster::standing::left) {
    const auto kept = std::exchange(kept_[n], {});
    for (const kept_message& m : kept) {
      if (m.k == cluster::kind::tokens)
        protocols.balance.take_back(cluster::reader(m.payload));
      else if (carries_work(m.k))
        protocols.counts.received.fetch_add(1, std::memory_order_seq_cst);
    }
    protocols.data.on_left(n);
    messenger.on_left(n);
  }
  protocols.life.members_have_changed();
  protocols.balance.members_have_changed();
}

void simulated_node::keep_back(node_id n, bool kept) {
  if (kept) {
    kept_[n];
    return;
  }
  auto node = kept_.extract(n);
  if (node.empty()) return;
  for (const kept_message& m : node.mapped()) post(n, m.k, m.payload, {});
}

void simulated_node::begin_to_leave() {
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
  return is_idle() && worker_->frames.live() == 0 && !protocols.balance.is_asking() &&
         !protocols.data.awaits_something();
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

bool simulated_node::all_is_sent() const {
  return std::all_of(lines_.begin(), lines_.end(),
                     [](const auto& l) { return l.second.channel->is_clear(); });
}

}  // namespace strata::sim
