// SPDX-License-Identifier: Apache-2.0
// What a simulated node has in place of threads that send and receive, and of doors where
// connections are made again.
#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "net/renewals.hpp"
#include "sim/simulated_job.hpp"

namespace strata::sim {
namespace {

// Both ends give it the same number. Who does not take it closes it, of
// which the other end hears when it uses it.
class numbered_renewal final : public net::renewal {
 public:
  numbered_renewal(simulated_transport& over, node_id n, std::uint32_t connection)
      : over_(over), node_(n), connection_(connection) {}
  ~numbered_renewal() override {
    if (!has_begun_) over_.refuse(node_, connection_);
  }
  [[nodiscard]] bool begin() override {
    over_.restart(node_, connection_);
    has_begun_ = true;
    return true;
  }

 private:
  simulated_transport& over_;
  const node_id node_;
  const std::uint32_t connection_;
  bool has_begun_ = false;
};

}  // namespace

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
  if (links_) {
    const as_its_worker here(*this);  // who waited for that goes on
    return static_cast<void>(links_->send_queued(t));
  }
  // What measures the networks tries again by itself.
  for (unsigned n = 0; n < nodes(); ++n) (void)t.flush(static_cast<node_id>(n));
}

void simulated_node::on_message(const net::header& h, std::span<const std::byte> payload) {
  if (parted_) return;  // its process has ended
  const auto k = static_cast<cluster::kind>(h.kind);
  if (survey_ != nullptr) {
    if (survey_->on_message(h.source, k, cluster::reader(payload), job_.in.now_ns()))
      return go_on_measuring();
    early_.emplace_back(h, std::vector(payload.begin(), payload.end()));
    return;
  }
  protocols.life.heard_of(h.source);
  if (!networks || networks->comes(h.source, k, payload)) receive(h.source, k, payload);
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
  networks ? networks->on_lost(peer, why) : lose(peer, why);
}

// ---- connections that are made again ----

std::optional<std::uint16_t> simulated_node::network_of(node_id, const net::transport* over) const {
  if (over == nullptr) return std::nullopt;
  return static_cast<std::uint16_t>(over == &first_ ? 0 : 1);
}

// Each end has it in its own time; or one of them, if the cable is cut just then.
bool simulated_node::connect(node_id n, std::uint16_t which) {
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
      if (!crashed_ && !parted_) networks->on_not_met(n, which);
    });
  };
  in.at(later(), [=, this, &in] {
    if (!passes()) return fails();
    job_.node(n).on_met(self_, which, connection);
    in.at(later(), [=, this] {
      if (!passes()) return fails();
      if (!crashed_ && !parted_) on_met(n, which, connection);
    });
  });
  return true;
}

void simulated_node::on_met(node_id n, std::uint16_t which, std::uint32_t connection) {
  networks->on_met(n, which, std::make_unique<numbered_renewal>(connections(which), n, connection));
}

void simulated_node::mend() {
  if (crashed_ || parted_) return;
  (void)networks->mend(job_.in.now_ns());
  job_.in.at(job_.in.now_ns() + job_.model.mends_after_ns / 4, [this] { mend(); });
}

}  // namespace strata::sim
