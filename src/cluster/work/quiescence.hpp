// SPDX-License-Identifier: Apache-2.0
// Whether anything still moves anywhere. Node 0 sends waves down a binary tree; each node answers
// when it and all below it are passive, with the sums of messages sent and received. Two waves in a
// row with the same sums, as many received as sent, prove that nothing moved in between. Source: F.
// Mattern, "Algorithms for distributed termination detection", 1987 (doi:10.1007/BF01782776), the
// four-counter method. A wave takes 2 (N - 1) messages, of which 2 floor(log2 N) are sent one after
// the other; when nothing moves any more, at most two more begin.
//
// Where nodes come and go each wave says who is in it, which is for node 0 to know: a node that
// comes is counted there before it has any work, one that leaves hands its counts over. When either
// happens the wave that is under way says nothing any more.
//
// Who wants to know only whether a computation has come to rest does not wait for calls that block
// nor for times to come, which may be no part of it. Such a wave goes first.
#pragma once
#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include "cluster/words/codec.hpp"
#include "cluster/words/surroundings.hpp"

namespace strata::cluster {

// Of work_counts, at some time, of some nodes.
struct work_sums {
  std::uint64_t sent = 0, received = 0;
  friend bool operator==(const work_sums&, const work_sums&) = default;
};

class quiescence {
 public:
  quiescence(mailer& mail, local_node& here, work_counts& counts);

  // When a node is passive: local_node::is_idle(), or ::is_still().
  enum class passive : std::uint32_t { idle, still };

  // On node 0: calls `done` once all have been so and nothing has moved anywhere since the call,
  // from whatever thread finds out.
  void detect(std::function<void()> done, passive when = passive::idle);
  // This node has just become idle, or still.
  void node_is_idle();

  // On node 0, with the inbox: somebody has come or left; and what one that leaves has sent and
  // received. On other nodes: nothing.
  void members_have_changed();
  void inherit(std::uint64_t sent, std::uint64_t received);
  // Of all who have left.
  [[nodiscard]] work_sums inherited() const;

  bool on_message(node_id from, kind k, reader r);

  // Waves sent so far (node 0).
  [[nodiscard]] std::uint32_t waves() const;

 private:
  using sums = work_sums;
  using callbacks = std::vector<std::function<void()>>;
  // What each probe begins with.
  struct wave_head {
    std::uint32_t number = 0;
    passive when = passive::idle;
  };
  // With the lock. What try_to_answer() returns is called without it.
  void begin_wave(wave_head wave);
  void begin_next_wave();
  // Those that waited for waves like this one.
  [[nodiscard]] callbacks take_done();
  [[nodiscard]] callbacks try_to_answer();
  [[nodiscard]] bool is_passive() const;
  [[nodiscard]] bool is_passive_with(sums& mine) const;
  // Takes this node's place in the tree of those who are in the wave; false: it has none.
  bool find_place();

  mailer& mail_;
  local_node& here_;
  work_counts& counts_;

  mutable std::mutex mutex_;
  wave_head wave_;
  std::atomic<bool> pending_{false};  // a wave waits for this node's answer
  // Who is in it, node 0 first; empty: all nodes of a job to which nobody comes.
  std::vector<node_id> in_wave_;
  node_id parent_ = 0;
  std::vector<node_id> children_;  // at most two, for which there is room
  unsigned awaited_ = 0;           // children that have not answered
  sums below_;
  sums inherited_;
  sums previous_;
  bool have_previous_ = false;
  callbacks when_idle_, when_still_;
};

}  // namespace strata::cluster
