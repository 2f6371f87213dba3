// SPDX-License-Identifier: Apache-2.0
#include "cluster/opening/finding.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "cluster/opening/connected.hpp"
#include "cluster/opening/own_sockets.hpp"
#include "cluster/ways/found_networks.hpp"
#include "cluster/ways/link_costs.hpp"
#include "launch/own_address.hpp"
#include "net/tcp/mesh.hpp"
#include "os/clock.hpp"
#include "strata/error.hpp"

namespace strata::cluster {
namespace {

// A connection whose first packet is lost begins anew after a second.
constexpr std::int64_t patience_for_answers_ns = 1'500'000'000;

bool tells_where(const launch::address& a) { return a.port != 0 || !a.worker.empty(); }

// What the first node of a host tries its networks with: UDP where the job uses it, as nothing else
// may get through; else TCP.
class trial {
 public:
  trial(const launch::job_description& job, const options& settings)
      : job_(job), settings_(settings) {
    mine_.home = listen(job.bind_address, home_);
    for (const launch::own_network& n : launch::networks_of(launch::own_addresses())) {
      // One of UCX cannot be used there.
      const bool is_newer = n.range.find(':') != std::string::npos;
      if (is_newer && network_of(job.transport) == network_kind::ucx) continue;
      std::optional<part> p;
      launch::address where = listen(n.mine.numeric, p);
      if (!p) continue;
      mine_.networks.push_back({n.range, n.mine.interface, std::move(where)});
      parts_.push_back(std::move(p));
    }
  }
  [[nodiscard]] const own_finds& mine() const noexcept { return mine_; }

  // Over all at once.
  std::vector<answer> try_all(const std::vector<found_networks::candidate>& what,
                              launch::control_line& line) {
    std::vector<part> parts;
    std::vector<std::vector<launch::address>> directories;
    std::vector<std::uint16_t> numbers;
    for (std::size_t i = 0; i < what.size(); ++i) {
      if (std::none_of(what[i].others.begin(), what[i].others.end(), tells_where)) continue;
      parts.push_back(std::move(*part_on(what[i].range)));
      directories.push_back(what[i].others);
      numbers.push_back(static_cast<std::uint16_t>(i));
    }
    if (parts.empty()) return {};
    const connecting how{// Which build a node is of is looked at later, and told better.
                         net::tcp::identity_in(job_, {}),
                         os::now_ns(),
                         job_.start_limit_ns,
                         settings_.socket_bytes,
                         {line.news_fd(), [&line] { line.look(); }},
                         true,
                         patience_for_answers_ns};
    or_hear_why(how, [&] { there_ = connect(parts, which::first, directories, how); });
    std::vector<answer> all;
    for (std::size_t i = 0; i < there_.size(); ++i) {
      for (unsigned n = 0; n < job_.capacity; ++n) {
        const auto node = static_cast<node_id>(n);
        if (tells_where(directories[i][n]) && there_[i].reaches(node))
          all.push_back({numbers[i], node});
      }
    }
    return all;
  }
  // All have told who was there.
  void end() {
    for (connected& c : there_) c.leave_alone();
    there_.clear();
  }

 private:
  // Nowhere, where that is no address of this host's, or one that is not ready yet.
  launch::address listen(const std::string& numeric, std::optional<part>& made) const {
    const network_kind kind =
        network_of(job_.transport) == network_kind::udp ? network_kind::udp : network_kind::tcp;
    try {
      own_sockets own = open_sockets(job_, {{range_of(numeric), kind, {}}}, settings_);
      if (own.parts.empty()) return {};
      made = std::move(own.parts.front());
      const launch::address::door& d = own.where.doors.front();
      return {d.host, d.port, d.worker};
    } catch (const error&) {
      return {};
    }
  }
  std::optional<part>& part_on(const std::string& range) {
    if (range.empty()) return home_;
    const auto found = std::find_if(mine_.networks.begin(), mine_.networks.end(),
                                    [&](const own_finds::network& n) { return n.range == range; });
    return parts_[static_cast<std::size_t>(found - mine_.networks.begin())];
  }

  const launch::job_description& job_;
  const options& settings_;
  own_finds mine_;
  std::optional<part> home_;
  std::vector<std::optional<part>> parts_;  // by place in mine_.networks
  std::vector<connected> there_;
};

}  // namespace

finding find_networks(launch::control_line& line, const options& settings) {
  const launch::job_description& job = line.job();
  const std::vector<std::uint16_t> host_of(job.host_of.begin(), job.host_of.begin() + job.founders);
  const std::size_t hosts = std::set<std::uint16_t>(host_of.begin(), host_of.end()).size();
  if (hosts < 2 || hosts > link_costs::hosts_max) return {};
  const bool is_first = !job.late && std::find(host_of.begin(), host_of.end(), host_of[job.node]) ==
                                         host_of.begin() + job.node;
  std::optional<trial> own;
  if (is_first) own.emplace(job, settings);
  const found_networks found(line.share_found(own ? pack(own->mine()) : std::string()), host_of);
  std::vector<answer> answers;
  if (own) answers = own->try_all(found.tried_by(job.node, job.capacity), line);
  found_networks::outcome all =
      found.judge(line.share_found(own ? pack(answers) : std::string()), job.elastic);
  if (own) own->end();
  finding result{{}, std::move(all.joins)};
  for (const std::string& range : all.ranges)
    result.networks.push_back(
        {range, network_of(job.transport), range.empty() ? "hosts' addresses" : range});
  return result;
}

}  // namespace strata::cluster
