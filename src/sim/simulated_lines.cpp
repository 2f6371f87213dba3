// SPDX-License-Identifier: Apache-2.0
// What a simulated node says to its neighbours, and over what: connections that lose nothing over a
// network that does, which may end while both their nodes live.
#include <algorithm>
#include <cstring>
#include <utility>

#include "sim/simulated_node.hpp"

namespace strata::sim {
namespace {

constexpr std::size_t packet_head_bytes = sizeof(net::header) + 8;

}  // namespace

void simulated_node::send(node_id to, cluster::kind k, std::span<const std::byte> head,
                          std::span<const std::byte> body) {
  line& l = lines_[to];
  if (job_.model.links) {
    if (l.stands == line::state::closed) {
      l.waiting.push_back(cluster::copy_of(k, head, body));
      return;
    }
    if (l.stands == line::state::replaced) {
      return send(l.detour.front(), cluster::kind::detour, cluster::detour_head(self_, k, l.detour),
                  cluster::copy_of(k, head, body).payload);
    }
    if (cluster::counts_for_connection(k)) l.given.keep(cluster::copy_of(k, head, body));
  }
  transmit(to, l.used, k, head, body);
}

void simulated_node::transmit(node_id to, unsigned which, cluster::kind k,
                              std::span<const std::byte> head, std::span<const std::byte> body) {
  std::vector<std::byte> message(sizeof(k) + head.size() + body.size());
  std::memcpy(message.data(), &k, sizeof(k));
  if (!head.empty()) std::memcpy(message.data() + sizeof(k), head.data(), head.size());
  if (!body.empty())
    std::memcpy(message.data() + sizeof(k) + head.size(), body.data(), body.size());
  channel_to(to, which).send(std::move(message), job_.in.now_ns());
  watch(to, which);
}

// Of the one in use and the one after it.
bool simulated_node::carries(node_id other, unsigned which) {
  const line& l = lines_[other];
  return which == l.used ? l.stands == line::state::open : which > l.used && !l.spare_dropped;
}

net::reliable_channel& simulated_node::channel_to(node_id other, unsigned which) {
  auto& channel = lines_[other].connections[which].channel;
  if (channel == nullptr) {
    channel = std::make_unique<net::reliable_channel>(
        job_.model.channel,
        net::reliable_channel::hooks{
            [this, other, which](const net::reliable_channel::packet& p) {
              if (crashed_ || !carries(other, which)) return;
              const std::int64_t departs =
                  std::max(job_.in.now_ns(), local_now_) + job_.model.message_ns;
              std::vector<std::byte> copy(p.payload.begin(), p.payload.end());
              // Before the copy moves away: in which order arguments are made nobody says.
              const std::size_t bytes = packet_head_bytes + copy.size();
              const auto arrive = [this, other, which, p, copy = std::move(copy)] {
                simulated_node& there = job_.node(other);
                if (there.crashed_ || crashed_ || !there.carries(self_, which) ||
                    job_.torn_.contains({std::min(self_, other), std::max(self_, other), which}))
                  return;
                net::reliable_channel::packet arrived = p;
                arrived.payload = copy;
                there.channel_to(self_, which).on_packet(arrived, job_.in.now_ns());
                there.watch(self_, which);
              };
              job_.in.carry(self_, other, bytes, departs, arrive);
            },
            [this, other, which](std::span<const std::byte> m) { deliver(other, which, m); }});
  }
  return *channel;
}

// Plans the next look at what may have to be repeated.
void simulated_node::watch(node_id other, unsigned which) {
  if (!carries(other, which)) return;
  const std::int64_t next = channel_to(other, which).on_time(job_.in.now_ns());
  std::int64_t& timer_at = lines_[other].connections[which].timer_at;
  if (next >= timer_at) return;
  timer_at = next;
  job_.in.at(next, [this, other, which] {
    if (crashed_) return;
    lines_[other].connections[which].timer_at = INT64_MAX;
    watch(other, which);
  });
}

void simulated_node::deliver(node_id from, unsigned which, std::span<const std::byte> message) {
  cluster::kind k{};
  std::memcpy(&k, message.data(), sizeof(k));
  if (survey_ != nullptr) {
    if (survey_->on_message(from, k, cluster::reader(message.subspan(sizeof(k))), job_.in.now_ns()))
      return go_on_measuring();
    early_.emplace_back(from, std::vector(message.begin(), message.end()));
    return;
  }
  protocols.life.heard_of(from);
  const auto payload = message.subspan(sizeof(k));
  if (job_.model.links) {
    line& l = lines_[from];
    if (!carries(from, which)) return;
    if (cluster::counts_for_connection(k) && l.come.add(payload.size())) confirm(from, l);
  }
  if (!rerouting || !rerouting->keeps(from, {}, k, payload)) receive(from, k, payload);
}

// ---- connections that end ----

void job::tear(node_id a, node_id b, unsigned which) {
  silence(a, b, which);
  for (const auto& [end, other] : {std::pair(a, b), std::pair(b, a)}) {
    const auto takes_ns = static_cast<std::int64_t>(in.random.below(200'000));
    in.at(in.now_ns() + takes_ns, [this, end = end, other = other, which] {
      simulated_node& n = node(end);
      if (n.crashed_ || n.parted_ || !n.carries(other, which)) return;
      if (which == n.lines_[other].used)
        n.detours->on_broken(other, "closed the connection");
      else
        n.detours->on_spare_broken(other);
    });
  }
}

bool simulated_node::is_connected(node_id n) {
  return n != self_ && known_[n] && job_.model.links(self_, n).has_value();
}

std::uint64_t simulated_node::close(node_id n) {
  lines_[n].stands = line::state::closed;
  return lines_[n].come.confirm();
}

void simulated_node::go_by(node_id n, std::uint64_t come, const cluster::detours::path& by) {
  lines_[n].detour = by;
  resume(n, come, line::state::replaced);
}

void simulated_node::on_detoured(node_id n, cluster::kind k, std::span<const std::byte> payload) {
  if (!rerouting->keeps(n, {}, k, payload)) receive(n, k, payload);
}

bool simulated_node::has_spare(node_id n) {
  return job_.model.spares && is_connected(n) && lines_[n].used == 0 && !lines_[n].spare_dropped;
}

bool simulated_node::say_by_spare(node_id n, cluster::kind k, std::span<const std::byte> payload) {
  if (!has_spare(n)) return false;
  transmit(n, 1, k, payload, {});
  return true;
}

void simulated_node::go_on(node_id n, std::uint64_t come) {
  lines_[n].used = 1;
  resume(n, come, line::state::open);
}

// So many have come there; the rest, and what has waited, goes as the line stands from now on.
void simulated_node::resume(node_id n, std::uint64_t come, line::state stands) {
  line& l = lines_[n];
  l.given.confirm(come);
  l.stands = stands;
  for (const cluster::message_copy& m : l.given.take()) send(n, m.k, m.payload, {});
  for (const cluster::message_copy& m : std::exchange(l.waiting, {})) send(n, m.k, m.payload, {});
}

cluster::routes simulated_node::ways_without(node_id n,
                                             const std::set<cluster::detours::pair>& cuts) {
  cluster::way_plan p = rerouting->plan();
  p.cuts = {cuts.begin(), cuts.end()};
  return ways_of(n, p);
}

void simulated_node::on_cut(const cluster::detours::pair& ends) {
  if (self_ == 0) rerouting->on_cut(ends);
}

void simulated_node::confirm(node_id neighbour, line& l) {
  const std::uint64_t come = l.come.confirm();
  send(neighbour, cluster::kind::confirmed, std::as_bytes(std::span(&come, 1)), {});
}

bool simulated_node::on_confirmed(node_id from, cluster::kind k, cluster::reader r) {
  if (k != cluster::kind::confirmed) return false;
  line& l = lines_[from];
  if (l.stands == line::state::open) l.given.confirm(r.take<std::uint64_t>());
  return true;
}

void simulated_node::look_after_connections() {
  std::vector<node_id> silent;
  for (auto& [n, l] : lines_) {
    if (l.stands != line::state::open) continue;
    if (l.given.is_silent()) silent.push_back(n);
    if (!l.come.is_confirmed()) confirm(n, l);
  }
  detours->beat();
  for (const node_id n : silent) detours->on_silent(n);
}

}  // namespace strata::sim
