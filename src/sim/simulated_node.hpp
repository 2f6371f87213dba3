// SPDX-License-Identifier: Apache-2.0
// One node of a simulated job: the protocols and the links of src/cluster as they are, over a
// simulated transport, and one worker that runs real tokens, each of which takes a stated time.
#pragma once
#include <array>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cluster/handling.hpp"
#include "cluster/links/links.hpp"
#include "cluster/members/membership_protocol.hpp"
#include "cluster/named_networks.hpp"
#include "cluster/protocols.hpp"
#include "cluster/ways/link_costs.hpp"
#include "cluster/ways/routes.hpp"
#include "cluster/ways/survey.hpp"
#include "cluster/work/stall_watch.hpp"
#include "messages/messenger.hpp"
#include "net/transport.hpp"
#include "sched/place.hpp"
#include "sim/simulated_transfers.hpp"
#include "sim/simulated_transport.hpp"
#include "sim/world.hpp"

namespace strata::sim {

class job;

class simulated_node final : public cluster::mailer,
                             public cluster::local_node,
                             public cluster::membership_protocol::hands,
                             public cluster::named_networks::ground,
                             public cluster::handling_ground,
                             public cluster::stall_watch::hands,
                             public cluster::survey::line,
                             public net::receiver,
                             public simulated_transport::hands {
  job& job_;
  const node_id self_;
  cluster::membership members_;
  std::vector<bool> known_;  // by node: it is there, or was
  // By node, of those that it has been told of: also those that had left when it came. Else 0.
  std::vector<std::uint16_t> hosts_;
  simulated_transport first_;
  std::optional<simulated_transport> second_;  // with job_model::spares
  // Since the job has begun.
  std::optional<cluster::links> links_;

 public:
  simulated_node(job& j, node_id self);
  ~simulated_node();

  // ---- cluster::mailer ----
  [[nodiscard]] node_id self() const noexcept override { return self_; }
  [[nodiscard]] node_id nodes() const noexcept override;
  [[nodiscard]] const cluster::membership& members() const noexcept override { return members_; }
  void post(node_id to, cluster::kind k, std::span<const std::byte> head,
            std::span<const std::byte> body) override;
  void wait_for_room(node_id) override {}
  void posted_for(node_id source, node_id to) override { links_->posted_for(source, to); }
  [[nodiscard]] net::transfers* transfers_with(node_id peer) noexcept override {
    return way_to(peer).next == peer ? &transfers : nullptr;
  }

  // ---- cluster::local_node ----
  // Puts a task into the node's queue, as if the program had.
  void run_soon(detail::task* t) override;
  detail::task* take_travelling() override;
  detail::task* take_travelling_from(detail::worker&) override { return take_travelling(); }
  detail::task* take_shelvable_from(detail::worker&) override { return nullptr; }  // no shelves
  detail::task* take_shared() override { return take_travelling(); }
  void ask_everybody() override {}
  [[nodiscard]] bool is_idle() const override { return !in_call_ && is_still(); }
  [[nodiscard]] bool is_still() const override {
    return !busy_ && ready_.empty() && tokens_.empty();
  }
  [[nodiscard]] std::uint32_t load() const override {
    return static_cast<std::uint32_t>(tokens_.size());
  }
  void fail(std::exception_ptr error) override;
  void settle(bool forget) override;
  detail::worker& network_worker() override { return *worker_; }

  // ---- cluster::membership_protocol::hands ----
  void on_standing(node_id n) override;
  void keep_back(node_id n, bool kept) override { links_->keep_back(n, kept); }
  void on_entered() override;
  [[nodiscard]] bool nothing_holds() override;
  void last_words() override { messenger.hand_over(); }
  void on_stay() override;
  void on_parted() override;

  // ---- cluster::named_networks::ground ----
  void receive(node_id from, cluster::kind k, std::span<const std::byte> payload) override;
  void heard_of(node_id n) override { protocols.life.heard_of(n); }
  void lose(node_id node, const std::string& why) override;
  void cannot_reach(node_id node, const std::string& why) override { lose(node, why); }
  [[nodiscard]] const net::transport* polled() const override { return polled_; }
  [[nodiscard]] bool is_over() const override { return crashed_ || parted_ || broken_; }
  [[nodiscard]] bool has_said_goodbye(node_id) const override { return false; }
  [[nodiscard]] bool is_known_to(node_id n) const override {
    return membership_protocol.is_known_to(n);
  }
  [[nodiscard]] std::uint16_t host(node_id n) const override { return hosts_[n]; }
  [[nodiscard]] std::optional<cluster::link> cost(node_id a, node_id b) const override;
  void set_costs(cluster::link_costs measured) override { costs_ = std::move(measured); }
  [[nodiscard]] std::vector<node_id> measured_here(
      const std::function<bool(node_id)>& counts) override;
  [[nodiscard]] std::optional<std::uint16_t> network_to(node_id) const override { return 0; }
  [[nodiscard]] std::optional<std::uint16_t> network_of(node_id,
                                                        const net::transport* over) const override;
  [[nodiscard]] net::transport& line_to(node_id, std::uint16_t which) override {
    return connections(which);
  }
  bool connect(node_id n, std::uint16_t which) override;
  void on_spared(bool is) override;
  void on_ways() override {}
  void on_changed(const cluster::way_plan& p) override;
  void let_come(node_id n) override;

  // ---- cluster::handling_ground ----
  // What ends a runtime, or prints, ends or prints nothing here.
  bool on_other_kind(node_id, cluster::kind k) override {
    return k == cluster::kind::stop || k == cluster::kind::goodbye || k == cluster::kind::report;
  }

  // ---- cluster::stall_watch::hands ----
  [[nodiscard]] cluster::stall_watch::observation observe() override;
  [[nodiscard]] cluster::stall_watch::waits who_waits_here() override;
  [[nodiscard]] std::string describe_waits_here() override;
  void answer_soon() override;
  void tell_of_stall(const std::string& report) override;

  // ---- net::receiver ----
  void on_message(const net::header& h, std::span<const std::byte> payload) override;
  void on_lost(node_id peer, const std::string& why) override;

  // ---- simulated_transport::hands ----
  [[nodiscard]] std::int64_t departs_ns() override;
  [[nodiscard]] bool shares_network_with(const simulated_transport& t, node_id peer) const override;
  void on_arrival(simulated_transport& t) override;
  void on_room(simulated_transport& t) override;

  // ---- for whoever drives the simulation ----
  // Makes something of this node's worker: sends the first token, for instance.
  void as_worker(const std::function<void()>& f);

  // A thread of the program, here: on a stack of its own. It calls what a program calls, but for
  // what asks the machine or needs a worker of a runtime: blocking(), descriptors, time points and
  // thread_attributes. Waiting gives the stack up, and the node does other things; waits with a
  // time limit, as a duration, end by the world's clock. Until all have ended the node does not
  // leave.
  void begin_thread(std::function<void()> body);
  // Those that have not ended. All have to before the job is destroyed.
  [[nodiscard]] unsigned threads() const noexcept { return threads_; }
  // On which something has begun that has not ended: threads, and calls that others have made here.
  [[nodiscard]] std::size_t stacks() const noexcept { return stacks_.size(); }
  // From now on, or not any more, as if a thread of this node were in a call that blocks.
  void be_in_call(bool is);
  // Suspends the calling thread of this node.
  void pause(std::int64_t ns);

  // Nothing happens here any more, and nothing that it sent arrives. The others are not told. But
  // its threads run on, as what is on their stacks has to be destroyed: waits for other nodes throw
  // node_lost_error; sleeps, and waits for each other, last as they would, so it is for the test to
  // let those end.
  void crash();
  [[nodiscard]] bool has_crashed() const noexcept { return crashed_; }
  // Whom this node knows to be lost, and why.
  [[nodiscard]] const std::map<node_id, std::string>& losses() const noexcept { return losses_; }

  [[nodiscard]] std::uint64_t tasks() const noexcept { return tasks_; }
  [[nodiscard]] cluster::routes::way way_to(node_id n) const {
    return networks ? networks->rerouting().to(n) : cluster::routes(self_, nodes()).to(n);
  }
  [[nodiscard]] std::uint64_t forwarded() const noexcept { return links_->forwarded(); }
  // Whether the program should send there, and what waits for a neighbour, in bytes: see
  // cluster::links.
  [[nodiscard]] bool is_congested(node_id to) const noexcept override {
    return links_->is_congested(to);
  }
  [[nodiscard]] std::size_t queued_bytes(node_id neighbour) const noexcept {
    return links_->queued_bytes(neighbour);
  }
  // There is a second connection to it, which nothing goes by.
  [[nodiscard]] bool has_spare(node_id n) const noexcept { return links_->has_spare(n); }
  // The first connection of each pair, or the spare one.
  [[nodiscard]] simulated_transport& connections(unsigned which = 0) {
    return which == 0 ? first_ : *second_;
  }

  [[nodiscard]] bool has_left() const noexcept { return parted_; }
  // What has come from another node, as in engine::handle(). Throws malformed, misuse_error.
  void handle(node_id from, cluster::kind k, std::span<const std::byte> payload);
  // What a runtime does when a node is lost: nothing of the program arrives here any more, and who
  // waits for something of another node throws that.
  void break_off(const std::exception_ptr& loss);

  messages::messenger messenger;  // outside threads: ask request::is_done()
  simulated_transfers transfers;
  cluster::protocols protocols;
  cluster::membership_protocol membership_protocol;
  cluster::stall_watch stalls;
  // With job_model::links, when the job has begun.
  std::optional<cluster::named_networks> networks;
  // For tests: what others have said to this node. True: it is for the test.
  std::function<bool(node_id from, cluster::kind k, std::span<const std::byte> payload)> hears;
  // For tests: what it is about to say. May throw what post() may.
  std::function<void(node_id to, cluster::kind k)> says;
  // For tests: a task is about to be queued. May throw what run_soon() may.
  std::function<void()> queues;
  // As threads of the program would: by whatever they wait for, whether that may come from outside
  // the job.
  std::map<std::string, bool> waiting;

 private:
  friend class job;
  friend class simulated_transfers;
  // While it exists the calling OS thread is this node's worker. What becomes ready meanwhile runs
  // later.
  class as_its_worker {
   public:
    explicit as_its_worker(simulated_node& n) noexcept;
    ~as_its_worker();
    as_its_worker(const as_its_worker&) = delete;
    as_its_worker& operator=(const as_its_worker&) = delete;

   private:
    simulated_node& node_;
    detail::worker* const outer_;
    messages::messenger* const outer_messenger_;
  };
  void run(detail::task& t);
  // Before the job begins.
  void measure();
  void go_on_measuring();
  bool try_post(node_id to, cluster::kind k, std::span<const std::byte> head,
                std::span<const std::byte> body) override;
  void begin();
  void begin_to_reroute();
  void expect(node_id n);
  void measure_again();

  void begin_to_leave();
  void try_to_leave();
  void wake();
  void step();
  void take_what_was_pushed();
  void beat();
  void look_for_stall();
  void believe_loss(node_id node, const std::string& why);
  // Of a loss that concerns the whole job.
  void break_job(node_id node, const std::string& why);
  void make_links();
  void take_in(simulated_transport& t);
  void on_met(node_id n, std::uint16_t which, std::uint32_t connection);
  void mend();

  std::unique_ptr<detail::place> worker_;
  std::deque<detail::task*> ready_;   // to be run here, first in first out
  std::deque<detail::task*> tokens_;  // newest at the back; thieves take from the front
  std::map<node_id, std::string> losses_;
  std::unique_ptr<cluster::survey> survey_;  // until the job begins, if it measures at all
  bool has_measured_ = false;
  std::vector<std::pair<net::header, std::vector<std::byte>>> early_;
  const net::transport* polled_ = nullptr;  // what comes comes over it
  cluster::link_costs costs_;
  std::array<bool, 2> takes_in_{};  // of each: it is planned
  bool has_asked_to_go_ = false, parted_ = false;
  std::atomic<bool> failing_{false};  // tokens and fibers are given up
  std::int64_t dead_frames_ = 0;      // of computations that have failed
  bool busy_ = false;
  bool in_call_ = false;
  bool runs_task_ = false;  // now, and not only as far as the clock goes
  bool crashed_ = false;
  bool ends_threads_ = false;  // it has crashed, and they run on nevertheless
  bool broken_ = false;
  unsigned threads_ = 0;
  // Those on which something has begun that has not ended.
  std::set<const detail::task*> stacks_;
  std::int64_t local_now_ = 0;  // ahead of the world's while a task runs
  std::uint64_t tasks_ = 0;
};

}  // namespace strata::sim
