// SPDX-License-Identifier: Apache-2.0
#include "cluster/ways/link_costs.hpp"

#include <algorithm>
#include <cmath>

#include "strata/error.hpp"

namespace strata::cluster {
namespace {

using launch::measured_link;

// Over any way of steps that are allowed the sum of costs is a number.
constexpr std::int64_t no_way = link::unlimited / 4;

}  // namespace

std::uint8_t to_step(std::int64_t value) noexcept {
  const double steps = 2 * std::log2(static_cast<double>(std::max<std::int64_t>(value, 1)));
  return static_cast<std::uint8_t>(std::min<long>(std::lround(steps), measured_link::step_max));
}

std::int64_t from_step(std::uint8_t step) noexcept {
  return std::llround(std::exp2(static_cast<double>(step) / 2));
}

std::int64_t cost_of(const launch::measured_link& m) noexcept {
  std::int64_t ns = from_step(m.latency);
  if (m.bandwidth != measured_link::unknown)
    ns += typical_bytes * 1'000'000'000 / from_step(m.bandwidth);
  return ns;
}

link_costs::link_costs(const std::vector<std::vector<measured_link>>& told,
                       const std::vector<std::uint16_t>& host_of) {
  const auto refuse = [](std::size_t node) {
    throw error("node " + std::to_string(node) +
                " says that it has measured what is no network of this job");
  };
  const auto add_host = [&](std::uint16_t host) {
    if (host >= places_.size()) places_.resize(host + std::size_t{1}, -1);
    if (places_[host] < 0) places_[host] = static_cast<std::int16_t>(hosts_++);
  };
  for (std::size_t n = 0; n < told.size(); ++n) {
    for (const measured_link& m : told[n]) {
      const bool bandwidth_is_one =
          m.bandwidth <= measured_link::step_max || m.bandwidth == measured_link::unknown;
      if (n >= host_of.size() || m.other >= host_of.size() || host_of[n] == host_of[m.other] ||
          m.network >= measured_link::networks_max || m.latency > measured_link::step_max ||
          !bandwidth_is_one)
        refuse(n);
      add_host(host_of[n]);
      add_host(host_of[m.other]);
      if (hosts_ > hosts_max) refuse(n);
    }
  }
  entries_.resize(hosts_ * hosts_);
  for (std::size_t n = 0; n < told.size(); ++n) {
    for (const measured_link& m : told[n]) {
      const auto a = static_cast<std::size_t>(places_[host_of[n]]);
      const auto b = static_cast<std::size_t>(places_[host_of[m.other]]);
      // One node of a pair measures; what else is told of a network is of no use.
      const entry& known = at(a, b);
      const bool is_better = m.network != known.network && margin * cost_of(m) < known.what.cost_ns;
      if (known.what.cost_ns != 0 && !is_better) continue;
      const bool streamed = m.bandwidth != measured_link::unknown;
      const entry e{{cost_of(m), from_step(m.latency), streamed ? from_step(m.bandwidth) : 0},
                    m.network};
      at(a, b) = at(b, a) = e;
      if (m.network >= dearest_.size()) dearest_.resize(m.network + std::size_t{1});
      dearest_[m.network] = std::max(dearest_[m.network], e.what.cost_ns);
    }
  }
  keep_direct_what_may_be_equal();
}

// Source: R. W. Floyd, "Algorithm 97: shortest path", 1962.
void link_costs::keep_direct_what_may_be_equal() {
  std::vector<std::int64_t> best(hosts_ * hosts_, no_way);
  for (std::size_t i = 0; i < best.size(); ++i) {
    if (entries_[i].what.cost_ns != 0) best[i] = entries_[i].what.cost_ns;
  }
  for (std::size_t by = 0; by < hosts_; ++by) {
    for (std::size_t a = 0; a < hosts_; ++a) {
      const std::int64_t first = best[a * hosts_ + by];
      if (first >= no_way || a == by) continue;
      for (std::size_t b = 0; b < hosts_; ++b) {
        std::int64_t& way = best[a * hosts_ + b];
        way = std::min(way, first + best[by * hosts_ + b]);
      }
    }
  }
  for (std::size_t i = 0; i < best.size(); ++i) {
    std::int64_t& cost = entries_[i].what.cost_ns;
    if (cost != 0 && cost <= margin * best[i]) cost = best[i];
  }
}

std::optional<std::size_t> link_costs::place_of(std::uint16_t host) const {
  if (host >= places_.size() || places_[host] < 0) return std::nullopt;
  return static_cast<std::size_t>(places_[host]);
}

std::optional<link> link_costs::between(std::uint16_t host, std::uint16_t other,
                                        std::uint16_t network) const {
  const auto a = place_of(host);
  const auto b = place_of(other);
  if (!a || !b) return std::nullopt;
  const entry& e = entries_[*a * hosts_ + *b];
  if (e.what.cost_ns == 0 || e.network != network) return std::nullopt;
  return e.what;
}

std::optional<std::uint16_t> link_costs::network(std::uint16_t host, std::uint16_t other) const {
  const auto a = place_of(host);
  const auto b = place_of(other);
  if (!a || !b || entries_[*a * hosts_ + *b].what.cost_ns == 0) return std::nullopt;
  return entries_[*a * hosts_ + *b].network;
}

std::int64_t link_costs::dearest_ns(std::uint16_t network) const {
  return network < dearest_.size() ? dearest_[network] : 0;
}

}  // namespace strata::cluster
