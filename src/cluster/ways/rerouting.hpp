// SPDX-License-Identifier: Apache-2.0
// How all nodes of a running job come to other ways: because one that has come forwards too, one
// that leaves does not any more, or networks cost something else now. (Requirement P12.)
//
// Node 0 orders changes, one at a time. Each has a number, and a plan from which all nodes compute
// the same ways:
//
//   0 -> member       next_ways   the plan
//   member -> 0       ways_ready  it forwards by them what others send by them
//   0 -> member       use_ways    all do
//   member -> member  way_ends    the last by the old way; what comes next comes by the new one
//   member -> 0       ways_done   it has changed its ways, and nothing comes here by old ones
//   0 -> member       ways_over   nothing is under way by old ones any more
//
// A message carries the number of the ways by which it was sent, and whoever forwards it goes by
// those: so it goes in no circle, whoever has changed and whoever has not. Of two nodes that have a
// direct connection before and after nothing changes, and neither says a last word.
//
//   member -> 0       spare_me    before it leaves: it wants to forward nothing any more
//   0 -> member       spared      yes; or no, because some reach each other by it only
//   comer -> 0        forwards    all know it, and it may forward
//   member -> 0       saw_leave   somebody has said its last word here: until all have heard that
//                                 of one that leaves nothing changes, as it takes no part any more
//
// Connections end, too, and are made again (detours.hpp), and node 0 hears of it as all do.
//
// Node 0 lets nobody come while ways change, nor changes them while somebody comes: so a comer
// begins with the ways that all others have. All of it is called with the inbox, but for ways().
#pragma once
#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "cluster/ways/routes.hpp"
#include "cluster/ways/succession.hpp"
#include "cluster/ways/way_plan.hpp"
#include "cluster/words/codec.hpp"
#include "cluster/words/surroundings.hpp"

namespace strata::cluster {

class rerouting {
 public:
  // Who acts on it.
  class hands {
   public:
    // The ways by that plan, to all nodes that this one has ever heard of. Throws malformed.
    [[nodiscard]] virtual routes ways_by(const way_plan& p) = 0;
    // It may not be let in yet, to whom those ways begin with.
    [[nodiscard]] virtual bool has_connections_for(const routes& ways) = 0;
    // What has that number is forwarded by these ways.
    virtual void set_table(std::uint32_t number, const routes& ways) = 0;
    // What this node has for n goes to `next` first, by the table of that number. `says_so`: the
    // last that goes by the old way is kind::way_ends.
    virtual void change_way(node_id n, node_id next, std::uint32_t table, bool says_so) = 0;
    // What node 0 has heard of connections that have ended, or are there again.
    virtual void learn(const way_plan::words& about_connections) = 0;
    // What n has said: its turn has come.
    virtual void on_kept(node_id n, kind k, std::span<const std::byte> payload) = 0;
    // This node forwards nothing any more; or it must.
    virtual void on_spared(bool is) = 0;
    // ways() or may_be_gateway() says something else than before.
    virtual void on_ways() = 0;
    // On node 0: all go by this plan, and whoever comes next shall; n may come now.
    virtual void on_changed(const way_plan& p) = 0;
    virtual void let_come(node_id n) = 0;

   protected:
    ~hands() = default;
  };

  // In a job that goes by `first` so far.
  rerouting(mailer& mail, const way_plan& first, hands& h);

  [[nodiscard]] const way_plan& plan() const noexcept { return plan_; }
  // The ways of this node. Any thread.
  [[nodiscard]] std::shared_ptr<const routes> ways() const;
  [[nodiscard]] routes::way to(node_id n) const { return ways()->to(n); }
  // What is under way between others may come by here.
  [[nodiscard]] bool may_be_gateway() const;
  // What it has for that neighbour goes to it directly, or did until just now.
  [[nodiscard]] bool goes_directly_to(node_id neighbour) const;
  // On node 0: a change is under way. Any thread.
  [[nodiscard]] bool is_changing() const noexcept {
    return is_changing_.load(std::memory_order_acquire);
  }

  // What n has said. True: it is kept until its turn comes. See succession.
  bool keeps(node_id n, std::optional<std::uint32_t> table, kind k,
             std::span<const std::byte> payload) {
    if (!arrivals_.awaits_somebody() || !goes_from_end_to_end(k)) [[likely]]
      return false;
    return arrivals_.keeps(n, table, k, payload);
  }
  bool on_message(node_id from, kind k, reader r);

  // `n` will come.
  void expect(node_id n);
  // On node 0, after that: hands::let_come() is called when it may, perhaps at once.
  void ask_to_let_come(node_id n);
  // This node has a connection that it had not before.
  void on_connected();
  // `n` has left, or will not come.
  void on_left(node_id n);
  // This node has come, and all know it.
  void offer_to_forward();
  // It wants to leave: hands::on_spared() tells whether it may.
  void ask_to_be_spared();
  // On node 0: the connection between these two has ended, or is there again.
  void on_word(const way_plan::pair& ends, std::uint32_t number);
  // On node 0: these costs count, instead of those of the beginning.
  void set_costs(std::vector<way_plan::measurement> measured);
  // The job ends: no change begins any more.
  void stop();
  // The job has lost a node: last words may never come, and nobody waits for them.
  void give_up();

 private:
  // Of a change that this node takes part in.
  enum class step { preparing, ready, changed, done };
  enum class order { none, preparing, changing };  // node 0's
  // What is said between two nodes, rather than between two neighbours.
  static bool goes_from_end_to_end(kind k) noexcept {
    return k != kind::forward && k != kind::ping && k != kind::pong && k != kind::way_ends &&
           !is_about_connections(k);
  }

  // To the others that take part in the change.
  void tell_others(kind k, std::span<const std::byte> payload);
  void tell_number(node_id n, kind k);
  void answer(kind k);
  void take_number(reader& r) const;
  void set_ways(std::shared_ptr<const routes> w);
  std::shared_ptr<const routes> compute(const way_plan& p);
  [[nodiscard]] bool changes_between(node_id n) const;
  void on_plan(way_plan p);
  void try_to_be_ready();
  void change();
  void on_end(node_id from);
  void release(node_id from);
  void look_whether_done();
  void on_over();
  void on_spared(reader& r);
  // Node 0's.
  void try_to_begin();
  void on_saw_leave(node_id from, node_id gone);
  [[nodiscard]] way_plan plan_next();
  // Without those who want to be spared and can be.
  void grant_wishes(way_plan& p);
  void begin(const way_plan& p);
  void on_answer(node_id from, order expected);
  void next_step();
  [[nodiscard]] bool reaches_all(const way_plan& p);
  void tell_whether_spared(node_id n, bool is);

  mailer& mail_;
  hands& hands_;
  way_plan plan_;  // in use
  mutable std::mutex mutex_;
  std::shared_ptr<const routes> ways_;  // with the mutex, or the inbox and only read
  std::optional<way_plan> next_;        // from its arrival until nothing goes by old ways anywhere
  step step_ = step::done;
  std::shared_ptr<const routes> other_ways_;  // those that come, or went
  succession arrivals_;
  bool stopped_ = false;
  unsigned unanswered_wishes_ = 0;  // of this node, to be spared

  order order_ = order::none;
  // Release: what came of the change. Partner: is_changing().
  std::atomic<bool> is_changing_{false};
  std::set<node_id> awaited_;    // whose answer is to come
  std::set<node_id> coming_;     // who may come, and is not known to all yet
  std::deque<node_id> at_door_;  // who may not come yet
  // Who has left, and of whom that is not known yet; and who has heard it before node 0.
  std::map<node_id, std::set<node_id>> going_, knew_first_;
  std::set<node_id> offers_;      // who forwards from the next change on
  std::deque<node_id> wishes_;    // who wants to be spared
  std::vector<node_id> granted_;  // of them, by the change that is under way
  std::vector<way_plan::measurement> measured_;
  way_plan::words about_connections_;
};

}  // namespace strata::cluster
