// SPDX-License-Identifier: Apache-2.0
// A node of a running job: its transports, its sender and receiver threads, and the protocols
// between them and the scheduler. (Requirements E12-E16.)
#pragma once
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/fair_mutex.hpp"
#include "cluster/engine/departures.hpp"
#include "cluster/engine/program_cores.hpp"
#include "cluster/engine/reception_rules.hpp"
#include "cluster/engine/strays.hpp"
#include "cluster/handling.hpp"
#include "cluster/links/links.hpp"
#include "cluster/members/membership_protocol.hpp"
#include "cluster/members/suspicions.hpp"
#include "cluster/named_networks.hpp"
#include "cluster/opening/entrance.hpp"
#include "cluster/opening/reopening.hpp"
#include "cluster/protocols.hpp"
#include "cluster/ways/reach.hpp"
#include "cluster/work/stall_watch.hpp"
#include "launch/job.hpp"
#include "net/transport.hpp"
#include "os/futex.hpp"
#include "sched/neighbourhood.hpp"
#include "sched/scheduler.hpp"
#include "strata/options.hpp"
#include "strata/stats.hpp"

namespace strata::cluster {

struct connections;  // transports.hpp

class engine final : public mailer,
                     public local_node,
                     public clock,
                     public net::receiver,
                     public detail::neighbourhood,
                     public membership_protocol::hands,
                     public named_networks::ground,
                     public handling_ground,
                     public reopening::hands,
                     public stall_watch::hands {
 public:
  // Joins the job that `line` leads to; blocks until every node has. Throws strata::error.
  engine(detail::scheduler& workers, std::unique_ptr<launch::control_line> line,
         const options& settings, visiting_protocol& visitor);
  ~engine();

  // Node 0: blocks until nothing moves on any node. Throws node_lost_error if one is lost before.
  void wait_until_quiet();
  // Node 0, when its program has no more use for the others: waits until nothing moves on any node,
  // then lets all of them end.
  void finish();
  // All other nodes: works for the job until it is over. Returns the status to end with.
  [[nodiscard]] int serve();

  // Every node prints who waits for what, soon. May be called by a signal handler, where there are
  // or may be others.
  void request_report() noexcept;

  // For people: node, peers and the transports between them.
  [[nodiscard]] std::string describe() const;
  // For people: what was stolen, from whom.
  [[nodiscard]] std::string statistics_text() const;
  // What crossed the network, by transport; and what only passed by here.
  [[nodiscard]] std::vector<transport_statistics> traffic() const;
  [[nodiscard]] std::uint64_t passed_on() const noexcept;

  // ---- mailer ----
  [[nodiscard]] node_id self() const noexcept override { return self_; }
  [[nodiscard]] node_id nodes() const noexcept override { return nodes_; }
  [[nodiscard]] const membership& members() const noexcept override { return members_; }
  void post(node_id to, kind k, std::span<const std::byte> head,
            std::span<const std::byte> body) override;
  void wait_for_room(node_id to) override;
  [[nodiscard]] bool is_congested(node_id to) const noexcept override {
    return links_->is_congested(to);
  }
  void posted_for(node_id source, node_id to) override { links_->posted_for(source, to); }
  sight look_for_message(node_id from) noexcept override;
  [[nodiscard]] net::corked cork(node_id to, std::span<const std::byte> lasting) override {
    return links_->cork(to, lasting);
  }
  [[nodiscard]] net::transfers* transfers_with(node_id peer) noexcept override {
    net::transport* const way = links_->way_to(peer);
    return way == nullptr ? nullptr : way->transfers_of_peers();
  }
  [[nodiscard]] std::vector<net::transfers*> all_transfers() override;

  [[nodiscard]] net::joint_copies* copies_with(node_id peer) noexcept override {
    net::transport* const way = links_->way_to(peer);
    return way == nullptr ? nullptr : way->copies_of_host();
  }

  // ---- local_node ----
  void run_soon(detail::task* t) override { workers_.inject(t); }
  detail::task* take_travelling() override { return workers_.take_travelling(); }
  detail::task* take_shared() override { return workers_.take_shared(); }
  detail::task* take_travelling_from(detail::worker& w) override {
    return detail::scheduler::take_travelling_from(w);
  }
  detail::task* take_shelvable_from(detail::worker& w) override {
    return detail::scheduler::take_shelvable_from(w);
  }
  void ask_everybody() override { workers_.ask_everybody(); }
  void ask_everybody_soon() override { workers_.ask_everybody_soon(); }
  [[nodiscard]] bool is_idle() const override {
    return has_nothing_to_do(detail::scheduler::waits::in_calls_too);
  }
  [[nodiscard]] bool is_still() const override {
    return has_nothing_to_do(detail::scheduler::waits::none);
  }
  [[nodiscard]] std::uint32_t load() const override { return workers_.load(); }
  void fail(std::exception_ptr error) override { workers_.fail(std::move(error)); }
  void settle(bool forget) override { workers_.settle(forget); }
  detail::worker& network_worker() override { return network_worker_; }

  // ---- clock ----
  [[nodiscard]] std::int64_t now_ns() const override;

  // ---- net::receiver ----
  void on_message(const net::header& h, std::span<const std::byte> payload) override;
  void on_lost(node_id peer, const std::string& why) override;
  void on_arrived(node_id peer, std::uint64_t number, bool whole) override {
    visitor_.on_arrived(peer, number, whole);
  }
  void on_given(node_id peer, std::uint64_t own_number, bool whole) override {
    visitor_.on_given(peer, own_number, whole);
  }

  // ---- detail::neighbourhood ----
  void want_work() noexcept override;
  void begins_token() noexcept override;
  detail::task* take(detail::worker& w, detail::next_take& after) noexcept override;
  bool holds_something() const noexcept override;
  bool poll() noexcept override;
  void look() noexcept override;
  void begin_polling() noexcept override;
  void end_polling() noexcept override;
  bool stand_in(os::futex_word& own, std::uint32_t expected) noexcept override;
  void rouse_stand_in() noexcept override;
  void dismiss_stand_in() noexcept override;
  void feed(detail::worker& w) noexcept override;
  void worker_sleeps() noexcept override;
  void all_sleep() noexcept override;
  void node_is_idle() noexcept override;
  void computation_failed(const std::exception_ptr& error) noexcept override;
  void leave_loss_to_launcher() noexcept override;
  [[nodiscard]] route way_to(std::uint16_t node) const override;
  [[nodiscard]] std::vector<std::int64_t> costs_from(std::uint16_t from) override;
  [[nodiscard]] bool is_member(std::uint16_t node) const noexcept override;
  [[nodiscard]] bool is_known(std::uint16_t node) const noexcept override;

  // ---- membership_protocol::hands ----
  void on_standing(node_id n) override;
  void keep_back(node_id n, bool kept) override { links_->keep_back(n, kept); }
  void on_entered() override;
  [[nodiscard]] bool nothing_holds() override;
  void last_words() override;
  void on_stay() override;
  void on_parted() override;

  // ---- stall_watch::hands (health.cpp) ----
  [[nodiscard]] stall_watch::observation observe() override;
  [[nodiscard]] stall_watch::waits who_waits_here() override;
  [[nodiscard]] std::string describe_waits_here() override;
  void answer_soon() override;
  void tell_of_stall(const std::string& report) override;

  // ---- named_networks::ground ----
  void receive(node_id from, kind k, std::span<const std::byte> payload) override;
  void heard_of(node_id n) override { protocols_->life.heard_of(n); }
  void lose(node_id peer, const std::string& why) override;
  void cannot_reach(node_id peer, const std::string& why) override;  // see suspicions
  [[nodiscard]] const net::transport* polled() const override { return polled_; }
  [[nodiscard]] bool is_over() const noexcept override {
    return broken_.load(std::memory_order_relaxed) || stopping_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] bool has_said_goodbye(node_id n) const override { return departures_.has_gone(n); }
  [[nodiscard]] bool is_known_to(node_id n) const override {
    return membership_protocol_->is_known_to(n);
  }
  [[nodiscard]] std::uint16_t host(node_id n) const override { return who_->host(n); }
  [[nodiscard]] std::optional<link> cost(node_id a, node_id b) const override {
    return who_->cost(a, b);
  }
  void set_costs(link_costs measured) override { who_->set_costs(std::move(measured)); }
  [[nodiscard]] std::vector<node_id> measured_here(
      const std::function<bool(node_id)>& counts) override {
    return who_->measured_by(self_, counts);
  }
  [[nodiscard]] std::optional<std::uint16_t> network_to(node_id n) const override {
    return who_->network(self_, n);
  }
  [[nodiscard]] std::optional<std::uint16_t> network_of(node_id n,
                                                        const net::transport* over) const override {
    return reopening_->network_of(n, over);
  }
  [[nodiscard]] net::transport& line_to(node_id n, std::uint16_t network) override {
    return *reopening_->line_to(n, network);
  }
  bool connect(node_id n, std::uint16_t network) override {
    return reopening_->connect(n, network, who_->reopened_at(n, network));
  }
  void on_spared(bool is) override;
  void on_ways() override { is_gateway_ = networks_->rerouting().may_be_gateway(); }
  void on_changed(const way_plan& p) override;
  void let_come(node_id n) override;

  // ---- handling_ground ----
  bool on_other_kind(node_id from, kind k) override;

  // ---- reopening::hands ----
  std::unique_lock<fair_mutex<>> take_inbox() override { return std::unique_lock(inbox_); }
  void on_met(node_id n, std::uint16_t network, std::unique_ptr<net::renewal> made) override {
    networks_->on_met(n, network, std::move(made));
  }
  void on_not_met(node_id n, std::uint16_t network) override { networks_->on_not_met(n, network); }

 private:
  // A worker may have yet to wake up to tell who waits of a failure.
  [[nodiscard]] bool has_nothing_to_do(detail::scheduler::waits counted) const {
    return workers_.is_idle(counted) && !workers_.failure.is_awaited();
  }
  // The constructor's steps (beginning.cpp), in this order.
  [[nodiscard]] connections open_connections();
  void order_others();
  void make_protocols();
  void introduce_network_worker();
  void watch_for_stalls();
  void meet_workers(const connections& joined);
  // Throws std::system_error when the system has no more threads: nothing of this node goes on.
  void begin();
  void start_threads();
  void bind_program();
  void come_if_late();
  void give_up_beginning();
  void stop_threads();
  void run_receiver(net::transport& t);
  // A receiver: true when it has slept, no longer than that, because workers look for messages.
  // `seen`: idle_epoch_ before it last looked at what else there is to do.
  [[nodiscard]] bool leave_it_to_workers(std::uint32_t seen, std::int64_t most_ns);
  void watch_line();
  void keep_in_touch();
  // Nodes that come and go (members.cpp). admit(): the line's thread.
  void admit(node_id node, std::uint16_t host, const launch::address& where);
  void try_to_admit(node_id node, std::uint16_t host, const launch::address& where);
  void let_in(node_id node);
  bool is_no_loss(node_id node);
  // Returns for how long none is due.
  std::int64_t look_after_suspicions();
  [[nodiscard]] routes::way find_way(node_id node) const;
  // None: it is not there.
  [[nodiscard]] std::optional<route> find_route(node_id node) const;
  [[nodiscard]] std::string network_over(const net::transport* over, node_id neighbour) const;
  [[nodiscard]] std::vector<std::int64_t> costs_between_others(node_id from);
  void wait_for_ways();
  // Measures, and connects again, what is due. Returns for how long nothing else is.
  std::int64_t look_after_networks();
  void ask_to_leave();
  void begin_to_leave();
  void try_to_leave();
  void never_came(node_id node);
  void refuse_to_leave();
  void put_aside(node_id node, message_copy m);
  void give_up_strays();
  void tell_who_waits_for(node_id node);
  // Of a loss that concerns the whole job.
  void believe_loss(node_id peer, const std::string& why);
  void break_job(node_id peer, const std::string& why);
  [[nodiscard]] std::vector<node_id> others() const;
  [[nodiscard]] bool everybody_is_gone();
  void lose_neighbour(node_id peer, const malformed& why) noexcept;
  // Handles what has arrived, of each transport at most so many; the caller holds inbox_.
  std::size_t poll_all(std::size_t messages_max);
  std::size_t poll_these(std::span<const std::unique_ptr<net::transport>> some,
                         std::size_t messages_max);
  // The same for a worker, unless somebody is at it (true: something had arrived), and for a
  // receiver, who waits for that one: how many.
  bool take_in() noexcept;
  std::size_t take_in_patiently() noexcept;
  // What has arrived by one of them, or now and then by all (reception_rules::look_nearby()), of
  // each at most so many; the caller holds inbox_.
  std::size_t look_nearby(const std::unique_ptr<net::transport>& t, std::size_t messages_max);
  // Of one of them, by somebody for whom nobody was woken and who stops polling now.
  void stop_attending(const std::unique_ptr<net::transport>& t, std::size_t messages_max) noexcept;
  // That between processes of this host, if there is one; else null.
  [[nodiscard]] const std::unique_ptr<net::transport>* nearby() const noexcept;
  // Where somebody can stand in for a receiver, or null: who sleeps in its place can do so at one
  // transport besides.
  [[nodiscard]] const std::unique_ptr<net::transport>* front_door() const noexcept {
    const auto* const t = nearby();
    return t != nullptr || transports_.empty() ? t : &transports_.front();
  }
  // Those that leave it to workers.
  void rouse_receivers() noexcept;
  // The receiver that looks after all else, wherever it sleeps.
  void wake_timekeeper() noexcept;
  // What has come, and ended, before anybody polls. With the inbox.
  void hear(const connections& joined);
  void handle(node_id from, kind k, std::span<const std::byte> payload);
  void wait_for_goodbyes();
  void linger();
  // False: a node was lost before.
  [[nodiscard]] bool becomes_quiet();
  void broadcast(kind k, std::span<const std::byte> payload);
  void report_everywhere();
  void print_report_once();

  detail::scheduler& workers_;
  const options settings_;
  std::unique_ptr<launch::control_line> line_;
  const node_id self_;
  const node_id nodes_;  // numbers that a node can have
  membership members_;

  std::vector<std::unique_ptr<net::transport>> transports_;
  std::vector<on_networks> on_networks_;  // of them; not changed any more
  std::vector<std::string> network_names_;
  std::unique_ptr<reach> who_;       // is where; with the inbox
  std::unique_ptr<entrance> door_;   // of an elastic job
  std::thread porter_;               // waits at the door for one that comes
  std::atomic<bool> leaves_{false};  // and is to look whether it can
  bool has_asked_to_go_ = false;     // with the inbox
  std::unique_ptr<links> links_;
  std::vector<node_id> farthest_first_;  // all others; what is said to them goes by the nearer ones
  routes ways_;                          // where they never change
  std::vector<std::vector<launch::measured_link>> told_;  // see connections
  std::unique_ptr<reopening> reopening_;      // where connections are made again; else null
  std::unique_ptr<named_networks> networks_;  // where ways change; else null. With the inbox
  std::atomic<bool> is_gateway_{false};       // messages between others may come by here
  std::unique_ptr<protocols> protocols_;
  std::unique_ptr<membership_protocol> membership_protocol_;
  suspicions suspected_{launch::word_of_loss_ns};  // with the inbox
  std::unique_ptr<stall_watch> stalls_;
  visiting_protocol& visitor_;

  // One thread at a time handles messages: a receiver, or a worker that has nothing else to do.
  // Fair: whoever handles many locks it again at once, and another one that waits may be the one
  // that tells the neighbours that this node lives.
  fair_mutex<> inbox_;
  std::size_t bytes_taken_ = 0;                  // since the last poll_all()
  const net::transport* polled_ = nullptr;       // now
  std::atomic<std::size_t> worker_messages_{1};  // what a worker takes in at once, as they are now
  detail::worker network_worker_;
  strays strays_;  // taken with the inbox
  reception_rules rules_;
  std::atomic<unsigned> receivers_asleep_{0};  // where messages come in
  std::atomic<unsigned> pollers_{0};           // idle workers that look now

  std::atomic<bool> stopping_{false};
  std::atomic<bool> broken_{false};  // a node is lost: nothing of the program arrives any more
  os::futex_word idle_epoch_{0};     // where a receiver sleeps while workers look for messages
  std::vector<std::thread> threads_;
  std::thread line_thread_;
  program_cores program_cores_;

  departures departures_;
  // Once broken_, for ever: who, and what the program is told. Written with the inbox, before that.
  node_id broken_by_ = 0;
  std::exception_ptr loss_;
  std::atomic<bool> settle_wanted_{false};
  std::atomic<bool> report_wanted_{false};
  std::atomic<bool> answer_wanted_{false};
  std::atomic<std::int64_t> reported_at_{INT64_MIN / 2};
  std::atomic<bool> polled_since_beat_{false};  // with polling: some worker has looked
};

}  // namespace strata::cluster
