// SPDX-License-Identifier: Apache-2.0
// What a node has besides where several networks are named, or found: other ways while the job runs
// (rerouting.hpp), what the networks cost now (remeasuring.hpp), and connections that end before
// their nodes do (detours.hpp) and are made again (mending.hpp). None of these four knows another
// one, nor the links; here they meet, in the runtime as in the simulation, each of which is the
// ground that this stands on. (Requirement P12.)
//
// named_networks.cpp: ways and costs. named_networks_connections.cpp: connections.
//
// All of it is called with the inbox, but for what rerouting() tells any thread.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "cluster/links/detours.hpp"
#include "cluster/links/links.hpp"
#include "cluster/links/mending.hpp"
#include "cluster/ways/link_costs.hpp"
#include "cluster/ways/remeasuring.hpp"
#include "cluster/ways/rerouting.hpp"
#include "cluster/ways/way_plan.hpp"
#include "cluster/words/surroundings.hpp"
#include "net/renewals.hpp"

namespace strata::cluster {

class named_networks final : private cluster::rerouting::hands,
                             private cluster::remeasuring::hands,
                             private cluster::detours::hands,
                             private cluster::mending::hands {
 public:
  using network = std::uint16_t;  // by its place in the user's list
  class ground {
   public:
    // What n has said is to be handled now.
    virtual void receive(node_id n, kind k, std::span<const std::byte> payload) = 0;
    // Something has come from n, which lives.
    virtual void heard_of(node_id n) = 0;
    // It has sent nonsense, or is too far; no way leads there.
    virtual void lose(node_id n, const std::string& why) = 0;
    virtual void cannot_reach(node_id n, const std::string& why) = 0;
    // That by which what is being handled came, or whose end is.
    [[nodiscard]] virtual const net::transport* polled() const = 0;
    // Nothing goes on here any more.
    [[nodiscard]] virtual bool is_over() const = 0;
    // n ends with the job, and has said so: now their connection may end.
    [[nodiscard]] virtual bool has_said_goodbye(node_id n) const = 0;
    // See membership_protocol.
    [[nodiscard]] virtual bool is_known_to(node_id n) const = 0;

    // ---- of the networks that nodes are on ----
    [[nodiscard]] virtual std::uint16_t host(node_id n) const = 0;
    // What it costs directly, as measured last; none: they do not reach each other. See routes.
    [[nodiscard]] virtual std::optional<link> cost(node_id a, node_id b) const = 0;
    virtual void set_costs(link_costs measured) = 0;
    // The nodes whose networks this one measures, of those that count.
    [[nodiscard]] virtual std::vector<node_id> measured_here(
        const std::function<bool(node_id)>& counts) = 0;
    // By which it talks to n directly; none: it does not.
    [[nodiscard]] virtual std::optional<network> network_to(node_id n) const = 0;

    // ---- where connections are made again ----
    // Over which network that transport connects this node with n; none, also for null: over none
    // that would be made again.
    [[nodiscard]] virtual std::optional<network> network_of(node_id n,
                                                            const net::transport* over) const = 0;
    // The one that connects it with n over that network, which is one of these.
    [[nodiscard]] virtual net::transport& line_to(node_id n, network over) = 0;
    // on_met() or on_not_met() follows. False: neither does, nothing is tried there any more.
    virtual bool connect(node_id n, network over) = 0;

    // ---- see rerouting::hands ----
    virtual void on_spared(bool is) = 0;
    virtual void on_ways() = 0;
    virtual void on_changed(const way_plan& p) = 0;
    virtual void let_come(node_id n) = 0;

   protected:
    ~ground() = default;
  };

  using measurements = std::vector<std::vector<launch::measured_link>>;  // by node
  struct beginning {
    way_plan plan;             // by which the job goes; the costs are those of it
    const measurements& told;  // when the job began; lives longer
    std::int64_t remeasure_every_ns = 0;
    std::optional<cluster::mending::settings> mends{};  // none: no connection is made again
  };
  // All live longer. Nothing has been said to anybody yet.
  named_networks(mailer& mail, const membership& members, links& l, const clock& time,
                 const beginning& b, ground& g);

  [[nodiscard]] cluster::rerouting& rerouting() noexcept { return rerouting_; }
  [[nodiscard]] const cluster::rerouting& rerouting() const noexcept { return rerouting_; }
  [[nodiscard]] const cluster::detours& detours() const noexcept { return detours_; }

  // ---- what comes ----
  // By the connection to `from`. False: it is not to be handled, now or at all.
  [[nodiscard]] bool comes(node_id from, kind k, std::span<const std::byte> payload) {
    // Of the survey when the job began, but late: an answer would go by the other connection, and
    // be taken for that to another ping.
    if ((k == kind::ping || k == kind::pong) && comes_by_spare(from)) return false;
    if (links_.outlives_connection(from)) links_.has_come(from, k, payload.size());
    return !rerouting_.keeps(from, {}, k, payload);
  }
  // False: not one of its kinds. Throws malformed.
  bool on_message(node_id from, kind k, reader r);
  // The connection to `peer`, or the spare one, has ended.
  void on_lost(node_id peer, const std::string& why);

  // ---- when something is due ----
  // Both return when to call again, unless something comes before; INT64_MAX: never.
  std::int64_t measure(std::int64_t now_ns) { return remeasuring_.on_time(now_ns); }
  std::int64_t mend(std::int64_t now_ns);
  // At every beat. Unless this node was `listening` silence proves nothing.
  void beat(bool listening);

  // ---- members ----
  void on_left(node_id n);
  // All know that this node has left.
  void on_parted() { detours_.say_gone(); }
  void members_have_changed() { remeasuring_.members_have_changed(time_.now_ns()); }

  // ---- the end ----
  // No change begins, and nothing is measured any more.
  void stop();
  // The job has lost a node.
  void give_up();

  // ---- connections that are made again ----
  // A connection to n over that network, made by whichever of the two; or this node's attempt is
  // over.
  void on_met(node_id n, network over, std::unique_ptr<net::renewal> made);
  void on_not_met(node_id n, network over);
  // There is one that waits for n's word, without which it does not begin.
  [[nodiscard]] bool holds_connection_to(node_id n) const { return reopened_.contains(n); }

 private:
  // ---- rerouting::hands ----
  [[nodiscard]] routes ways_by(const way_plan& p) override;
  [[nodiscard]] bool has_connections_for(const routes& ways) override;
  void set_table(std::uint32_t number, const routes& ways) override {
    links_.set_table(number, ways);
  }
  void change_way(node_id n, node_id next, std::uint32_t table, bool says_so) override;
  void learn(const way_plan::words& about_connections) override {
    detours_.learn(about_connections);
  }
  void on_kept(node_id n, kind k, std::span<const std::byte> payload) override {
    ground_.receive(n, k, payload);
  }
  void on_spared(bool is) override { ground_.on_spared(is); }
  void on_ways() override { ground_.on_ways(); }
  void on_changed(const way_plan& p) override { ground_.on_changed(p); }
  void let_come(node_id n) override { ground_.let_come(n); }

  // ---- remeasuring::hands ----
  [[nodiscard]] std::vector<node_id> measured_here() override;
  [[nodiscard]] std::optional<network> network_to(node_id n) override {
    return members_.has(n) ? ground_.network_to(n) : std::nullopt;
  }
  bool post_directly(node_id to, kind k, std::span<const std::byte> head,
                     std::span<const std::byte> body) override {
    return links_.post_directly(to, k, head, body);
  }
  void on_costs(std::vector<way_plan::measurement> changed) override;

  // ---- detours::hands ----
  [[nodiscard]] bool is_connected(node_id n) override;
  std::uint64_t close(node_id n) override;
  [[nodiscard]] std::uint64_t given(node_id n) override { return links_.given(n); }
  [[nodiscard]] std::uint64_t come(node_id n) override { return links_.come(n); }
  bool say_by_spare(node_id n, kind k, std::span<const std::byte> payload) override {
    return links_.say_by_spare(n, k, payload);
  }
  void drop_spare(node_id n) override;
  void go_on(node_id n, std::uint64_t come) override { links_.go_on(n, come); }
  void say(node_id n, kind k, std::span<const std::byte> head,
           std::span<const std::byte> body) override {
    links_.say(n, k, head, body);
  }
  void go_by(node_id n, std::uint64_t come, const cluster::detours::path& way) override {
    links_.go_by(n, come, way);
  }
  void go_by_another(node_id n, const cluster::detours::path& way) override {
    links_.go_by_another(n, way);
  }
  void pass_on(node_id next, std::span<const std::byte> head, std::span<const std::byte> payload,
               const cluster::detours::pair_in_order& ends) override;
  void answer(node_id n, kind k, std::span<const std::byte> payload) override;
  void let_go(node_id n) override;
  void heard_of(node_id n) override { ground_.heard_of(n); }
  void on_detoured(node_id n, kind k, std::span<const std::byte> payload) override;
  [[nodiscard]] routes ways_without(node_id n,
                                    const std::set<cluster::detours::pair>& cuts) override;
  void end_detour(node_id n, kind k, std::span<const std::byte> payload) override {
    links_.end_detour(n, k, payload);
  }
  [[nodiscard]] bool has_ended_detour(node_id n) override { return links_.has_ended_detour(n); }
  [[nodiscard]] bool begin_anew(node_id n) override;
  void on_word(const cluster::detours::pair& ends, std::uint32_t number) override;
  void lose(node_id n, const std::string& why) override { ground_.lose(n, why); }
  void cannot_reach(node_id n, const std::string& why) override { ground_.cannot_reach(n, why); }

  // ---- mending::hands ----
  bool connect_again(node_id n, network over) override;
  [[nodiscard]] std::vector<node_id> spares() override;
  void speak_by_spare(node_id n) override { links_.confirm_by_spare(n); }
  void give_up_spare(node_id n) override { detours_.on_spare_broken(n); }

  // With these in place of what was told of the same hosts. Throws strata::error when it cannot be.
  [[nodiscard]] link_costs costs_with(const std::vector<way_plan::measurement>& newer) const;
  [[nodiscard]] believed_costs costs_at_first() const;
  [[nodiscard]] routes ways_from(node_id n, const way_plan& p) const;
  // Whether what is being looked at now is its second connection.
  [[nodiscard]] bool comes_by_spare(node_id peer) const;
  // Its connection has ended, but it may be reached by others. Not by this node as long as it comes
  // and is not known there: whose connection ends then is taken for one that never came.
  [[nodiscard]] bool lives_on(node_id peer) const;
  void has_lost(node_id n, const net::transport* over);

  mailer& mail_;
  ground& ground_;
  const membership& members_;
  links& links_;
  const clock& time_;
  const node_id self_, nodes_;
  const measurements& told_;
  std::vector<way_plan::measurement> told_since_;  // in ground's costs, too
  cluster::rerouting rerouting_;
  cluster::detours detours_;
  cluster::remeasuring remeasuring_;
  std::optional<cluster::mending> mending_;
  // A connection to a node that is reached by a detour so far.
  struct reopened {
    network over;
    std::unique_ptr<net::renewal> made;
  };
  std::map<node_id, reopened> reopened_;
};

}  // namespace strata::cluster
