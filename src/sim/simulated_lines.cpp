// SPDX-License-Identifier: Apache-2.0
// What a simulated node has in place of threads that send and receive, and what it does about
// connections that end while both their nodes live: as the engine.
#include <algorithm>
#include <utility>

#include "sim/simulated_job.hpp"

namespace strata::sim {

// ---- its turns ----

std::int64_t simulated_node::departs_ns() {
  if (job_.model.answers_while_busy) return job_.in.now_ns() + job_.model.message_ns;
  return std::max(job_.in.now_ns(), local_now_) + job_.model.message_ns;
}

bool simulated_node::shares_network_with(const simulated_transport& t, node_id peer) const {
  if (peer >= known_.size() || !known_[peer]) return false;
  // Who comes later has one connection to each.
  const node_id founders = job_.model.founders;
  const bool are_founders = founders == 0 || std::max(self_, peer) < founders;
  if (&t != &first_ && !are_founders) return false;
  return !job_.model.links || job_.model.links(self_, peer).has_value();
}

void simulated_node::on_arrival(simulated_transport& t) {
  if (job_.model.receive_ns == 0) {
    polled_ = &t;
    while (t.poll(*this, SIZE_MAX) != 0) {
    }
  } else if (!std::exchange(takes_in_[&t == &first_ ? 0 : 1], true)) {
    take_in(t);
  }
}

// One after the other.
void simulated_node::take_in(simulated_transport& t) {
  job_.in.at(job_.in.now_ns() + job_.model.receive_ns, [this, &t] {
    polled_ = &t;
    if (t.poll(*this, 1) != 0) return take_in(t);
    takes_in_[&t == &first_ ? 0 : 1] = false;
  });
}

void simulated_node::on_room(simulated_transport& t) {
  if (links_) return static_cast<void>(links_->send_queued(t));
  // What measures the networks tries again by itself.
  for (unsigned n = 0; n < nodes(); ++n) (void)t.flush(static_cast<node_id>(n));
}

void simulated_node::on_message(const net::header& h, std::span<const std::byte> payload) {
  const auto k = static_cast<cluster::kind>(h.kind);
  if (survey_ != nullptr) {
    if (survey_->on_message(h.source, k, cluster::reader(payload), job_.in.now_ns()))
      return go_on_measuring();
    early_.emplace_back(h, std::vector(payload.begin(), payload.end()));
    return;
  }
  protocols.life.heard_of(h.source);
  // Of the survey, but late: see engine::on_message().
  if ((k == cluster::kind::ping || k == cluster::kind::pong) && comes_by_spare(h.source)) return;
  if (detours && links_->outlives_connection(h.source))
    links_->has_come(h.source, k, payload.size());
  if (!rerouting || !rerouting->keeps(h.source, {}, k, payload)) receive(h.source, k, payload);
}

bool simulated_node::on_word_to_links(node_id from, cluster::kind k, cluster::reader r) {
  if (k == cluster::kind::confirmed) {
    const auto come = r.take<std::uint64_t>();
    if (!detours || !r.empty()) throw cluster::malformed("a word about no connection");
    if (mending && comes_by_spare(from)) mending->heard_by_spare(from);
    links_->on_confirmed(from, come);
    return true;
  }
  if (k != cluster::kind::hold) return false;
  const auto head = r.take<cluster::held_head>();
  if (head.destination >= nodes()) throw cluster::malformed("a word about a way that nobody goes");
  if (!broken_) links_->hold(from, head);
  return true;
}

// ---- connections that end ----

void job::tear(node_id a, node_id b, unsigned which) {
  silence(a, b, which);
  for (const auto& [end, other] : {std::pair(a, b), std::pair(b, a)}) {
    const auto takes_ns = static_cast<std::int64_t>(in.random.below(200'000));
    in.at(in.now_ns() + takes_ns, [this, end = end, other = other, which] {
      simulated_node& n = node(end);
      if (!n.crashed_ && !n.parted_) n.connections(which).lose(other, "closed the connection");
    });
  }
}

void simulated_node::on_lost(node_id peer, const std::string& why) {
  if (comes_by_spare(peer)) return detours->on_spare_broken(peer);
  if (lives_on(peer)) return detours->on_broken(peer, why);
  if (!rerouting || rerouting->goes_directly_to(peer)) lose(peer, why);
}

bool simulated_node::comes_by_spare(node_id peer) const {
  return links_->has_spare(peer) && polled_ != links_->way_to(peer);
}

bool simulated_node::lives_on(node_id peer) {
  return detours && links_->outlives_connection(peer) && members_.has(peer) && !parted_;
}

bool simulated_node::is_connected(node_id n) {
  return n != self_ && members_.of(n) != cluster::standing::absent && links_->way_to(n) != nullptr;
}

void simulated_node::on_detoured(node_id n, cluster::kind k, std::span<const std::byte> payload) {
  if (!rerouting->keeps(n, {}, k, payload)) receive(n, k, payload);
}

cluster::routes simulated_node::ways_without(node_id n,
                                             const std::set<cluster::detours::pair>& cuts) {
  cluster::way_plan p = rerouting->plan();
  p.about_connections.clear();
  for (const cluster::detours::pair& ends : cuts) p.about_connections[ends] = 1;
  return ways_of(n, p);
}

void simulated_node::on_word(const cluster::detours::pair& ends, std::uint32_t number) {
  if (self_ == 0) rerouting->on_word(ends, number);
}

void simulated_node::look_after_connections() {
  detours->beat();
  const cluster::links::trouble found = links_->confirm_all(true);
  for (const node_id n : found.silent) detours->on_silent(n);
  for (const node_id n : found.too_far) lose(n, "is reached by detours within detours only");
}

// ---- connections that are made again ----

std::uint64_t simulated_node::close(node_id n) {
  has_lost(n, links_->way_to(n));
  return links_->close(n);
}

void simulated_node::drop_spare(node_id n) {
  if (const net::transport* const spare = links_->spare_to(n)) has_lost(n, spare);
  links_->drop_spare(n);
}

void simulated_node::has_lost(node_id n, const net::transport* over) {
  if (mending) mending->lost(n, over == &first_ ? 0 : 1, job_.in.now_ns());
}

// Each end has it in its own time; or one of them, if the cable is cut just then.
bool simulated_node::connect_again(node_id n, std::uint16_t which) {
  if (!members_.has(n) || detours->is_undecided(n)) return false;
  world& in = job_.in;
  const std::uint32_t connection = ++job_.connections_tried_;
  const auto later = [&in] {
    return in.now_ns() + static_cast<std::int64_t>(5'000 + in.random.below(300'000));
  };
  const auto passes = [this, n, which] {
    const simulated_node& there = job_.node(n);
    return !there.crashed_ && !there.parted_ && !job_.wires_[which]->is_silent(self_, n);
  };
  const auto fails = [this, n, which, &in] {
    in.at(in.now_ns() + job_.model.mends_after_ns, [this, n, which] {
      if (!crashed_ && !parted_) mending->failed(n, which, job_.in.now_ns());
    });
  };
  in.at(later(), [=, this, &in] {
    if (!passes()) return fails();
    job_.node(n).on_reopened(self_, which, connection);
    in.at(later(), [=, this] {
      if (!passes()) return fails();
      if (!crashed_ && !parted_) on_reopened(n, which, connection);
    });
  });
  return true;
}

// As engine::on_met(). What is not taken is closed, of which the other end hears when it uses
// it.
void simulated_node::on_reopened(node_id n, std::uint16_t which, std::uint32_t connection) {
  mending->failed(n, which, job_.in.now_ns());
  simulated_transport& wire = connections(which);
  if (!members_.has(n) || links_->is_lost(n) ||
      (!reopened_.contains(n) && detours->is_undecided(n)))
    return wire.refuse(n, connection);
  if (detours->is_broken(n)) {
    reopened_.insert_or_assign(n, reopened{which, connection});
    return detours->on_connected(n);
  }
  if (&wire == links_->way_to(n)) return wire.refuse(n, connection);
  if (links_->spare_to(n) != nullptr) {
    if (links_->spare_to(n) != &wire) return wire.refuse(n, connection);
    detours->on_spare_broken(n);
  }
  wire.restart(n, connection);
  links_->add_spare(n, wire);
  mending->made(n, which, job_.in.now_ns());
}

bool simulated_node::begin_anew(node_id n) {
  const reopened made = reopened_.at(n);
  reopened_.erase(n);
  simulated_transport& wire = connections(made.which);
  wire.restart(n, made.connection);
  links_->begin_anew(n, wire);
  mending->made(n, made.which, job_.in.now_ns());
  return true;
}

std::vector<node_id> simulated_node::spares() {
  std::vector<node_id> all = members_.all();
  std::erase_if(all, [this](node_id n) { return n == self_ || !links_->has_spare(n); });
  return all;
}

void simulated_node::mend() {
  if (crashed_ || parted_) return;
  (void)mending->on_time(job_.in.now_ns());
  (void)detours->try_to_begin_anew();
  job_.in.at(job_.in.now_ns() + job_.model.mends_after_ns / 4, [this] { mend(); });
}

}  // namespace strata::sim
