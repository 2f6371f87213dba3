// SPDX-License-Identifier: Apache-2.0
// Tokens from node to node. (Requirement E21; S1.)
//
// An idle node asks a few others, one at a time; the answer comes from whoever handles messages
// there, never from a busy worker. When all of them had nothing it leaves its wish with its
// lifeline neighbours and is quiet: a neighbour that gets work to spare sends some unasked. So an
// idle cluster costs nothing, and no work is missed. Source: V. Saraswat, P. Kambadur, S. Kodali,
// D. Grove, S. Krishnamoorthy, "Lifeline-based global load balancing", 2011
// (doi:10.1145/1941553.1941582). Our lifelines are the nodes at distances 1, 2, 4, ...: work
// reaches everybody in O(log N) steps.
#pragma once
#include <atomic>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "cluster/words/surroundings.hpp"
#include "cluster/work/shelving.hpp"
#include "cluster/work/split_phase.hpp"
#include "cluster/work/unasked.hpp"
#include "cluster/work/victims.hpp"

namespace strata::cluster {

// Whether a victim that has nothing remembers who asked.
enum class wish : std::uint32_t {
  none,
  kept,   // and works for it, since the other is idle
  ahead,  // but the other has a token still: nobody is disturbed for it
};

// Who is asked, or sends unasked.
enum class balancing {
  random,    // an idle node asks others at random, the first of them of its own host
  sender,    // a node with work to spare sends it to another at random; idle ones ask nobody
  informed,  // an idle node asks who had most to do when last heard of
};
// By the name that users give it: one of those that the option table takes.
[[nodiscard]] balancing balancing_of(std::string_view name);

struct stealing_settings {
  balancing how = balancing::random;
  std::uint64_t seed = 1;
};

class stealing {
 public:
  stealing(mailer& mail, local_node& here, split_phase& data, shelving& shelf, work_counts& counts,
           hunger& wanted, const clock& time, const stealing_settings& settings);

  // This node is idle. Cheap when it has asked already.
  void want_work();
  // A worker that had nothing to do begins a token. When no other waits here, and those of other
  // nodes do not last long beside the time that it takes to get one, the next one is asked for now.
  void begins_token();
  // w has tasks to spare, and somebody waits. Called by the thread that runs w.
  void feed(detail::worker& w);
  // To be called now and then; returns when again, in ns from now. With balancing::sender a worker
  // that has tasks to spare may for long not come to where it asks itself whom to send one.
  [[nodiscard]] std::int64_t ask_in_time();
  // Somebody waits for work of this node.
  [[nodiscard]] bool hungry() const noexcept { return wanted_.is_for(hunger::wishes); }

  bool on_message(node_id from, kind k, reader r);
  void on_lost(node_id node);
  // Somebody has come, leaves or has left: who had nothing to ask for asks again.
  void members_have_changed();
  // What this node had sent as kind::tokens, to one that has left before it got them.
  void take_back(reader r);
  // This node leaves: what can travel goes to the others. To be called again and again.
  void hand_over();
  // An answer is on its way, maybe with tokens.
  [[nodiscard]] bool is_asking() const noexcept {
    return state_.load(std::memory_order_relaxed) == state::asking;
  }

  struct statistics {
    std::uint64_t asked = 0, refused = 0, taken = 0, given = 0, lifelines = 0, ahead = 0;
  };
  [[nodiscard]] statistics counted() const;

 private:
  enum class state { content, asking, resting };
  // Tokens in one answer.
  static constexpr std::uint32_t batch_max = 32;
  struct request {
    std::uint32_t batch;
    std::uint32_t wish;  // what becomes of it when there is nothing
  };

  // With the lock:
  [[nodiscard]] request request_for(wish w) const noexcept {
    return {batch_, static_cast<std::uint32_t>(w)};
  }
  void ask_next();
  void ask(node_id node, wish w);
  void rest();

  // Without it; the second group is in stealing_giving.cpp:
  // Asks who sent the last tokens for one more, if no more than so many wait here.
  void ask_ahead(std::uint32_t waiting_max);
  // False: it did not.
  bool no_longer_waits(node_id node);
  void on_tokens(node_id from, reader& r);

  void on_steal(node_id from, reader& r);
  [[nodiscard]] std::optional<node_id> who_is_fed();
  void waits(node_id node);
  // It is sent to that node, which waits no more; false: it stays here, and the node waits on.
  [[nodiscard]] bool feed_with(node_id node, detail::task& token, detail::worker& frames);
  // The next that take() has and that can be sent; null: none. frames: of who calls.
  template <class Take>
  [[nodiscard]] detail::task* next_to_send(detail::worker& frames, Take&& take);
  std::size_t send_tokens(node_id to, std::span<detail::task* const> tokens,
                          detail::worker& frames);
  [[nodiscard]] bool send_from_shelf(node_id to, detail::worker& frames);
  void stay(reader tokens, detail::worker& frames);

  mailer& mail_;
  split_phase& data_;
  shelving& shelf_;
  local_node& here_;
  work_counts& counts_;
  hunger& wanted_;
  const clock& time_;
  const stealing_settings settings_;

  mutable std::mutex mutex_;
  victims victims_;
  unasked unasked_;
  std::atomic<state> state_{state::content};
  unsigned attempts_left_ = 0;
  node_id asked_ = 0;  // the last
  std::int64_t asked_at_ = 0;
  std::int64_t got_at_ = 0;
  std::int64_t round_trip_ns_ = 0;
  std::uint32_t batch_ = 1;  // how many tokens to ask for
  // Who sent the last tokens, until it is asked ahead; nobody: this node. Written with the lock,
  // read without: a hint.
  std::atomic<node_id> giver_;
  std::int64_t came_at_ = 0;  // the last tokens
  bool soon_over_ = false;    // what came before them was

  // A lock of its own, held for a few instructions: a worker that feeds must get it, because it may
  // never push again.
  std::mutex wishes_;
  std::vector<node_id> waiting_;  // peers whose lifeline ends here
  statistics counts_of_;
};

}  // namespace strata::cluster
